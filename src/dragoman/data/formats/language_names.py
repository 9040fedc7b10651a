"""Names of languages in German, French, Spanish and Italian, as they head the columns of tables."""

_TABLE = """
af:afrikáans am:Amharisch,amharique,amárico,amarico ar:Arabisch,arabe,árabe,arabo
as:Assamesisch,assamais,asamés ay:aimara az:Aserbaidschanisch,azerbaïdjanais,azerbaiyano,azerbaigiano
be:Belarussisch,biélorusse,bielorruso,bielorusso bg:Bulgarisch,bulgare,búlgaro,bulgaro
bn:Bengalisch,bengalí,bengalese bo:Tibetisch,tibétain,tibetano br:Bretonisch,bretón,bretone
bs:Bosnisch,bosniaque,bosnio,bosniaco ca:Katalanisch,catalán,catalano cs:Tschechisch,tchèque,checo,ceco
cy:Walisisch,gallois,galés,gallese da:Dänisch,danois,danés,danese de:allemand,alemán,tedesco
el:Griechisch,grec,griego,greco en:Englisch,anglais,inglés,inglese eo:espéranto
es:Spanisch,espagnol,spagnolo et:Estnisch,estonien,estonio,estone eu:Baskisch,euskera,basco
fa:Persisch,persan,persa,persiano fi:Finnisch,finnois,finés,finlandese fo:Färöisch,féroïen,feroés
fr:Französisch,francés,francese fy:Westfriesisch ga:Irisch,irlandais,irlandés,irlandese gd:Gälisch
gl:Galicisch,galicien,gallego,galiziano gu:goudjarati,guyaratí ha:Haussa,haoussa
he:Hebräisch,hébreu,hebreo,ebraico hr:Kroatisch,croate,croata,croato ht:Haiti-Kreolisch
hu:Ungarisch,hongrois,húngaro,ungherese hy:Armenisch,arménien,armenio,armeno
id:Indonesisch,indonésien,indonesio,indonesiano is:Isländisch,islandais,islandés,islandese
it:Italienisch,italien ja:Japanisch,japonais,japonés,giapponese jv:Javanisch,javanais,javanés,giavanese
ka:Georgisch,géorgien,georgiano kk:Kasachisch,kazajo,kazako ko:Koreanisch,coréen,coreano
ku:Kurdisch,kurde,kurdo,curdo ky:Kirgisisch,kirghize,kirguís,kirghiso la:Latein,latín,latino
lb:Luxemburgisch,luxembourgeois,luxemburgués,lussemburghese lo:Laotisch lt:Litauisch,lituanien,lituano
lv:Lettisch,letton,letón,lettone mg:malgache,malgascio mi:Māori,maorí
mk:Mazedonisch,macédonien,macedonio,macedone ml:malayálam mn:Mongolisch,mongol,mongolo mr:maratí
ms:Malaiisch,malais,malayo,malese mt:Maltesisch,maltais,maltés my:Birmanisch,birman,birmano
ne:Nepalesisch,népalais,nepalí,nepalese nl:Niederländisch,néerlandais,neerlandés,olandese
no:Norwegisch,norvégien,noruego,norvegese oc:Okzitanisch,occitano or:Oriya pa:pendjabi,punyabí
pl:Polnisch,polonais,polaco,polacco ps:Paschtu,pachto,pastún
pt:Portugiesisch,portugais,portugués,portoghese rm:Rätoromanisch,romanche,romancio
ro:Rumänisch,roumain,rumano,rumeno ru:Russisch,russe,ruso,russo sa:sánscrito,sanscrito sd:sindi
si:Singhalesisch,cingalais,cingalés,singalese sk:Slowakisch,slovaque,eslovaco,slovacco
sl:Slowenisch,slovène,esloveno,sloveno so:somalí,somalo sq:Albanisch,albanais,albanés,albanese
sr:Serbisch,serbe,serbio,serbo su:Sundanesisch,soundanais,sundanés sv:Schwedisch,suédois,sueco,svedese
sw:Suaheli,suajili ta:tamoul te:télougou tg:Tadschikisch,tadjik,tayiko,tagico
th:Thailändisch,thaï,tailandés,thailandese ti:tigrigna,tigriña,tigrino
tk:Turkmenisch,turkmène,turcomano,turcomanno tl:tagalo tr:Türkisch,turc,turco tt:Tatarisch,tártaro,tataro
ug:Uigurisch,ouïghour,uigur,uiguro uk:Ukrainisch,ukrainien,ucraniano,ucraino ur:ourdou
uz:Usbekisch,ouzbek,uzbeko,uzbeco vi:Vietnamesisch,vietnamien,vietnamita yi:Jiddisch,yidis
zh:Chinesisch,chinois,chino,cinese zu:zoulou,zulú
"""
OTHER_NAMES = {code: names.split(",") for code, names in (row.split(":") for row in _TABLE.split())}
"""Names by the code of the language."""
