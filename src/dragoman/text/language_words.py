"""What `identify.py` knows of languages: their frequent words, which show their letters and endings too."""

FREQUENT = {
    "en": """
        the of and to in is that it for was on are as with his they be at this have from or by not but
        what all were we when your can said there use an each which she do how their if will up other
        about out many then them these so some her would make like him into time has look two more write
        go see number no way could people my than first been call who its now find long down day did get
        come made may part over new i you he one a had after me our where just man woman young wearing
        standing while against through between because very should before here does want know think going
        being something t s m ll re ve don didn isn doesn
    """,
    "de": """
        der die und das in ist zu den von nicht mit es sich auf für eine ein im dem auch als ich sie wir
        an werden aus er hat dass wie bei oder wenn einen einer haben wird um am sind noch nach was kann
        über nur so aber vor durch man sein war bis mehr können dieser diese des hier mich dir mir dich
        ihr ihm ihn uns schon keine kein gibt sehr alle immer du hatte einem zum zur unter wo zwischen
        jetzt müssen wurde diesem seine ihre junge mann frau steht sitzt während vom zwei leute mädchen
        möchte weil gegen muss etwas nichts warum habe bin bist macht gut machen gehen sagen wollen soll
        sollte würde
    """,
    "fr": """
        le la les de et l d des un une est que dans qui il pour ne pas sur au avec ce plus se par nous
        vous je en elle du sont son ses mais ou être cette avoir fait comme tout ont même aux leur si deux
        nos sans votre était peut bien lui très ils elles après où faire quand cela entre été dont tu me
        mon ma mes ta te ça qu j n c s t m y homme femme jeune personnes porte debout tandis pendant
        devant assis rien toujours encore aussi autre ces notre faut doit voir dire aller jamais pourquoi
        chez depuis sous vers alors avait vais suis êtes trop quelque chose
    """,
    "es": """
        el la de que y en los las un una por con no es se para del al lo como más pero su le sus este hay
        está son ha o ser también fue todo esta cuando muy sin sobre entre ya desde era hasta donde quien
        tiene me mi nos porque nada uno dos si ni él ella ellos yo tú te usted qué cómo estaba han puede
        hacer bien años vez hombre mujer mientras joven ahora siempre nunca algo otro otra estos estas así
        aquí mucho tengo estoy quiero debe ese eso después antes durante contra parte
    """,
    "it": """
        il di che la e un una in è per non con del si da sono le dei al come più ma gli lo nel della ho ha
        i mi ti ci anche se questo questa alla delle dal nella alle suo sua loro essere stato fatto tutto
        tutti molto cosa quando dove perché chi io tu lui lei noi voi era hai hanno fare ancora sempre mai
        niente qualcosa così sul sulla l d due uomo donna giovane mentre prima dopo senza tra fra ogni
        altro altri degli quello quella può deve bene oggi ora ecco siamo
    """,
    "pt": """
        o a de que e do da em um uma para com não é os as se na no por mais dos das ao como mas foi ele
        ela tem seu sua ou ser quando muito há nos já está eu também só pelo pela até isso entre era
        depois sem mesmo aos ter seus quem nas me esse eles estão você tinha foram essa num nem suas meu
        às minha têm numa pelos homem mulher enquanto jovem fazer tudo sobre bem ainda onde agora sempre
        nunca nada algo porque dois então aqui vai pode deve
    """,
    "nl": """
        de het een van en in is dat op te zijn met voor niet aan er om ook als dan maar bij wordt door
        naar uit ze hij dit die heeft hebben kan worden was nog over of je ik wat geen meer deze werd tot
        had kunnen moet haar hun wel zo al onder tegen omdat waar wij jij mijn jouw veel gaat gaan goed
        zou zich tussen man vrouw jonge terwijl mensen twee staat zit draagt iets niets altijd nooit hier
        daar nu onze alle andere
    """,
    "sv": """
        och att det i en som är på för av med den till inte har de ett om jag så vi kan men från var sig
        du han hon eller när vad ska ut upp vid efter där nu bara än någon också hade mycket alla skulle
        mig dig här då blir under sin sina över utan vara finns man kvinna ung medan två människor står
        sitter något inget alltid aldrig varför hur göra gör går vill måste kunde andra mellan
    """,
    "da": """
        og i at det er en til på som for med af den ikke der de har et jeg om så vi men kan fra var sig
        han hun eller når hvad skal ud op ved efter nu kun end nogen også havde meget alle ville mig dig
        her da bliver under sin sine over uden være findes mand kvinde ung mens to mennesker står sidder
        noget intet altid aldrig hvorfor hvordan gøre gør går vil må kunne andre mellem blev hvor mere
    """,
    "nb": """
        og i det er en til på som for med av den ikke de har et jeg om så vi men kan fra var seg når hva
        han hun eller skal ut opp ved etter nå bare enn noen også hadde mye alle ville meg deg her da blir
        under sin sine over uten være finnes mann kvinne ung mens to mennesker står sitter noe ingenting
        alltid aldri hvorfor hvordan gjøre gjør går vil må kunne andre mellom ble hvor mer
    """,
    "fi": """
        ja on ei että se hän oli joka mutta ovat kun niin kuin myös tai sen minä ole jos mitä voi tämä
        sinä hänen olen olet olla nyt vain kaikki mies nainen nuori kanssa jälkeen ennen siitä tässä
        siellä täällä koska mikä kuka missä miten paljon hyvin aina koskaan mitään jotain minun sinun
        meidän heidän he me te ollut pitää tehdä haluan vielä sekä jossa joita kaksi sitten ettei eivät
    """,
    "et": """
        ja on ei et see ta oli mis kes aga kui nii ka või selle ma ole mida saab tema olen nüüd ainult
        kõik mees naine noor koos pärast enne siin seal sest kuidas palju väga alati kunagi midagi minu
        sinu meie nende nad me te olnud peab teha tahan veel kus kaks siis ning oma seda välja üle läbi
        juures
    """,
    "pl": """
        i w na się nie z do to jest że o jak za po ale co dla od przez są tak był jego czy tylko tym może
        ma jej być już ich go jako tego kiedy gdy pan ja ty on ona my wy oni była było więc jeszcze bardzo
        wszystko nic coś zawsze nigdy dlaczego mężczyzna kobieta młody podczas które który która ze pod
        nad przed między dwa dwie ludzie stoi siedzi mnie mi cię ci nas was można trzeba bez oraz także
    """,
    "cs": """
        a v na se je že to s z do o i ale jako za pro k by si jsem tak už po jeho byl není jsou nebo když
        co ve ze od jak být bylo byla pod nad před mezi který která které kteří jen ještě velmi všechno
        nic něco vždy nikdy proč muž žena mladý mladá zatímco dva dvě lidé stojí sedí mě mi tě ti nás vás
        může musí bez také tento této tom tím má mají při podle aby kde jeden jedna jsme jste budu bude u
        své svůj oblečený dívka chlapec skupina pes
    """,
    "sk": """
        a v na sa je že to s z do o aj ale ako za pre k by si som tak už po jeho bol nie sú alebo keď čo
        vo zo od byť bolo bola pod nad pred medzi ktorý ktorá ktoré ktorí len ešte veľmi všetko nič niečo
        vždy nikdy prečo muž žena mladý mladá zatiaľ dva dve ľudia stojí sedí mňa mi ťa ti nás vás môže
        musí bez tiež tento tejto tom tým má majú pri podľa aby kde jeden jedna sme ste budem bude u svoj
    """,
    "sl": """
        in je v na se da so za pa ni z ki s po kot ga jih tudi bi pri od ali če do bil bila bilo sem si
        smo ste še že le samo zelo vse nič nekaj vedno nikoli zakaj moški ženska mlad medtem dva dve
        ljudje stoji sedi me mi te ti nas vas lahko mora brez pod nad pred med kateri katera ker kaj kdo
        kje kako biti ta to tega tem njegov njen ne kar zdaj
    """,
    "hr": """
        i u je na se da su za od ne s koji a to kao o što ili ali će bi bio bila bilo sam si smo ste još
        već samo vrlo sve ništa nešto uvijek nikad zašto muškarac žena mlad dok dva dvije ljudi stoji
        sjedi me mi te ti nas vas može mora bez pod nad prije između koja koje jer tko gdje kako biti taj
        ova ovo ovaj njegov njezin nije iz do po pri kad kada sada
    """,
    "hu": """
        a az és hogy nem is egy ez van de meg csak mint volt már még ha ki mert vagy el lehet kell azt ezt
        nagyon minden semmi valami mindig soha miért férfi nő fiatal miközben két ember áll ül engem téged
        minket nélkül alatt fölött előtt között aki ami amely hol hogyan lenni én te ő mi ti ők sem fel be
        le most után lesz voltak vannak magát neki nekem itt ott jó
    """,
    "ro": """
        și în de la a cu nu o pe este că un se din pentru mai ce sau care dar au fost am după sunt fi să
        al ai ale lui ei el ea eu tu noi voi foarte tot toate nimic ceva întotdeauna niciodată bărbat
        femeie tânăr timp două oameni stă mă te ne vă poate trebuie fără sub peste înainte între unde cum
        fie acest această acum doar când dacă până prin era avea avut unei unui
    """,
    "tr": """
        ve bir bu da de için ile ne çok olarak daha gibi var ben o ama kadar sonra değil mi en olan diye
        sen biz siz onlar her şey hiç hiçbir zaman neden adam kadın genç iken iki insan duruyor oturuyor
        beni seni bizi sizi onu olmak oldu olur şimdi sadece önce arasında altında üstünde nerede nasıl
        kim hangi mı mu mü bana sana yok ise veya ya ki bunu şu böyle
    """,
    "ca": """
        el la de que i en els les un una per amb no és es al del com més però seu seva són ha o ser també
        tot quan molt sense sobre entre ja des era fins on qui té em meu nosaltres perquè res dos si ni
        ell ella ells jo tu vostè què estava han pot fer bé anys home dona mentre jove ara sempre mai
        alguna altre aquest aquesta així aquí tinc estic vull després abans dels als hi ho
    """,
    "id": """
        yang dan di itu dengan untuk tidak ini dari dalam akan pada juga saya ke karena tersebut bisa ada
        mereka lebih kata tahun sudah atau saat oleh menjadi orang ia telah adalah seperti sebagai bahwa
        dapat para harus namun kita dua satu masih hari hanya mengatakan kepada kami setelah melakukan
        lalu belum lain dia kalau anda apa kamu aku banyak pria wanita muda sedang bukan jangan mengapa
    """,
    "vi": """
        và của là có không được trong một cho với người các đã này khi những để đến về từ ra như tôi nhiều
        vào cũng phải sau lại anh ông bị trên nhưng đó năm còn ở sẽ theo làm chỉ hay nếu rất thì bạn chúng
        họ nó cô em đang gì sao đàn phụ nữ trẻ hai
    """,
    "lt": """
        ir yra kad į iš tai su ne bet kaip ar už jis ji aš tu mes jūs jie buvo bus nuo iki tik jau dar
        labai viskas nieko kažkas visada niekada kodėl vyras moteris jaunas du žmonės stovi sėdi mane tave
        mus jus gali turi be po prieš tarp kuris kuri kurie nes kas kur būti šis ši tas apie dėl pagal
        savo man
    """,
    "lv": """
        un ir ka uz no tas ar ne bet kā vai par viņš viņa es tu mēs jūs viņi bija būs līdz tikai jau vēl
        ļoti viss neko kaut vienmēr nekad kāpēc vīrietis sieviete jauns divi cilvēki stāv sēž mani tevi
        mūs var jābūt bez pēc pirms starp kas kurš kura jo kur būt šis šī to šo pie savu man arī
    """,
    "is": """
        og að er í á sem það ekki við en hann hún þau ég þú með til af fyrir um eru var verið hefur hafa
        eftir frá eða þegar hvað hver upp út bara líka mjög allt ekkert eitthvað alltaf aldrei maður kona
        ungur tveir menn mig þig okkur ykkur getur verður án undir yfir áður milli þar hér hvernig þessi
        þetta
    """,
    "ru": """
        и в не на что он я с как а то это по но они к у за из мы так от же вы о для был только его её бы
        ты она была было были если уже или когда даже ни нет ещё мне меня тебя нас вас их ему ей чтобы
        который которая которые очень всё все ничего всегда никогда почему мужчина женщина молодой два
        люди может надо без под над перед между где кто чем при до есть быть этот эта там здесь сейчас
    """,
    "uk": """
        і в не на що він я з як а то це по але вони до у за із ми так від же ви про для був тільки його її
        би ти вона була було були якщо вже або коли навіть ні немає ще мені мене тебе нас вас їх йому їй
        щоб який яка які дуже все всі нічого завжди ніколи чому чоловік жінка молодий два люди може треба
        без під над перед між де хто чим при є бути цей ця там тут зараз та й
    """,
    "be": """
        і ў не на што ён я з як а то гэта па але яны да у за мы так ад жа вы пра для быў толькі яго яе бы
        ты яна была было былі калі ўжо або нават няма яшчэ мне мяне цябе нас вас іх яму каб які якая якія
        вельмі ўсё усе нічога заўсёды ніколі чаму мужчына жанчына малады два людзі можа трэба без пад над
        дзе хто ёсць быць
    """,
    "bg": """
        и в не на че той аз с как а то това по но те към у за от ние така са вие беше само да се ли ще би
        ти тя била било били ако вече или когато дори няма още мен теб нас вас ги му ѝ който която които
        много всичко всички нищо винаги никога защо мъж жена млад два двама хора може трябва без под над
        пред между къде кой при до има бъде този тази там тук сега е си съм
    """,
    "sr": """
        и у је на се да су за од не с који а то као о што или али ће би био била било сам си смо сте још
        већ само врло све ништа нешто увек никад зашто мушкарац жена млад док два две људи стоји седи ме
        ми те ти нас вас може мора без под над пре између која које јер ко где како бити тај ова ово овај
        његов није из до по када сада
    """,
    "mk": """
        и во не на што тој јас со како а тоа ова по но тие кон за од ние така се вие беше само да ли ќе би
        ти таа била било биле ако веќе или кога дури нема уште мене тебе нас вас ги му кој која кои многу
        сè сите ништо секогаш никогаш зошто маж жена млад два двајца луѓе може треба без под над пред меѓу
        каде има биде овој оваа таму тука сега е сум
    """,
    "ar": """
        في من على أن إلى هذا التي الذي لا ما هو هي كان عن مع كل بعد قد أو إذا لم بين لكن حتى ذلك هذه كما
        قال عند منذ ثم غير هناك نحن أنا أنت رجل امرأة كانت لن يكون
    """,
    "fa": """
        و در به از که این را با است برای آن یک خود تا کرد بر هم نیز می شود شد ما هر چه اگر بود های من تو
        او آنها همه هیچ مرد زن جوان نیست باید
    """,
    "ur": """
        اور کے میں کی ہے کا سے کو نے کہ یہ پر اس بھی تھا ہیں ایک وہ جو نہیں گیا کر ہم آپ لیے تو ان کیا ہو
        مرد عورت تھی
    """,
    "hi": """
        के में है की और से का को पर यह ने कि भी एक हैं नहीं तो हो था इस लिए या वह कर ही जो मैं तुम हम आप
    """,
    "mr": """
        आहे आणि या त्या मध्ये च्या ची चे ला हे तो ती ते होते नाही एक करून आहेत पण मी तू आम्ही काय का की
    """,
    "ne": """
        छ को मा र लाई ले हो पनि यो भएको छन् गर्न एक थियो का भने गरेको तर म तिमी हामी छैन त्यो
    """,
}  # fmt: skip
"""Of each language what is met most, in its spelling of today."""

SCRIPTS = {
    "ja": "\u3040-\u30ff", "zh": "\u4e00-\u9fff", "ko": "\uac00-\ud7af\u1100-\u11ff", "th": "\u0e00-\u0e7f",
    "el": "\u0370-\u03ff", "he": "\u0590-\u05ff", "ka": "\u10a0-\u10ff", "hy": "\u0530-\u058f",
    "ta": "\u0b80-\u0bff", "te": "\u0c00-\u0c7f", "bn": "\u0980-\u09ff", "gu": "\u0a80-\u0aff",
    "pa": "\u0a00-\u0a7f", "ml": "\u0d00-\u0d7f", "kn": "\u0c80-\u0cff", "my": "\u1000-\u109f",
    "km": "\u1780-\u17ff",
}  # fmt: skip
"""Languages that their script tells from all others here."""
