"""Languages by their codes (ISO 639-1 and 639-3) and by their names: English, their own and some others."""

from dragoman.data.formats.language_names import OTHER_NAMES

# Two letters, three letters, English name, other names.
_TABLE = """
af afr Afrikaans;am amh Amharic,አማርኛ;ar ara Arabic,العربية;as asm Assamese;ay aym Aymara;
az aze Azerbaijani;be bel Belarusian,беларуская;bg bul Bulgarian,български;bm bam Bambara;
bn ben Bengali,Bangla,বাংলা;bo bod Tibetan;br bre Breton;bs bos Bosnian,Bosanski;
ca cat Catalan,Català;cs ces Czech,Čeština;cy cym Welsh,Cymraeg;da dan Danish,Dansk;
de deu German,Deutsch;ee ewe Ewe;el ell Greek,Ελληνικά;en eng English;eo epo Esperanto;
es spa Spanish,Español,Castilian;et est Estonian,Eesti;eu eus Basque,Euskara;
fa fas Persian,Farsi,فارسی;fi fin Finnish,Suomi;fo fao Faroese;fr fra French,Français;
fy fry Frisian;ga gle Irish,Gaeilge;gd gla Scottish Gaelic;gl glg Galician,Galego;
gn grn Guarani,Guaraní;gu guj Gujarati;ha hau Hausa;he heb Hebrew,עברית;hi hin Hindi,हिन्दी;
hr hrv Croatian,Hrvatski;ht hat Haitian,Haitian Creole;hu hun Hungarian,Magyar;hy hye Armenian;
id ind Indonesian,Bahasa Indonesia;ig ibo Igbo;is isl Icelandic,Íslenska;
it ita Italian,Italiano;ja jpn Japanese,日本語;jv jav Javanese;ka kat Georgian,ქართული;
kk kaz Kazakh;km khm Khmer;kn kan Kannada;ko kor Korean,한국어;ku kur Kurdish;ky kir Kyrgyz;
la lat Latin;lb ltz Luxembourgish;lg lug Luganda;ln lin Lingala;lo lao Lao;
lt lit Lithuanian,Lietuvių;lv lav Latvian,Latviešu;mg mlg Malagasy;mi mri Maori;
mk mkd Macedonian;ml mal Malayalam;mn mon Mongolian;mr mar Marathi;ms msa Malay;mt mlt Maltese;
my mya Burmese;nb nob Norwegian Bokmål;ne nep Nepali;nl nld Dutch,Nederlands;
nn nno Norwegian Nynorsk;no nor Norwegian,Norsk;ny nya Chichewa,Nyanja;oc oci Occitan;
om orm Oromo;or ori Odia;pa pan Punjabi;pl pol Polish,Polski;ps pus Pashto;
pt por Portuguese,Português;qu que Quechua;rm roh Romansh;ro ron Romanian,Română;
ru rus Russian,Русский;rw kin Kinyarwanda;sa san Sanskrit;sd snd Sindhi;se sme Northern Sami;
si sin Sinhala;sk slk Slovak,Slovenčina;sl slv Slovenian,Slovenščina;sn sna Shona;so som Somali;
sq sqi Albanian,Shqip;sr srp Serbian,Српски;st sot Sotho;su sun Sundanese;
sv swe Swedish,Svenska;sw swa Swahili,Kiswahili;ta tam Tamil;te tel Telugu;tg tgk Tajik;
th tha Thai,ไทย;ti tir Tigrinya;tk tuk Turkmen;tl tgl Tagalog;tn tsn Tswana;
tr tur Turkish,Türkçe;ts tso Tsonga;tt tat Tatar;tw twi Twi;ug uig Uyghur;
uk ukr Ukrainian,Українська;ur urd Urdu,اردو;uz uzb Uzbek;vi vie Vietnamese,Tiếng Việt;
wo wol Wolof;xh xho Xhosa;yi yid Yiddish;yo yor Yoruba;zh zho Chinese,中文;zu zul Zulu
"""
# Codes of ISO 639-1 that have no name above.
_OTHER_CODES = """
aa ab ae ak an av ba bi ce ch co cr cu cv dv dz ff fj gv ho hz ia ie ii ik io iu kg ki kj kl kr ks
kv kw li lu mh na nd ng nr nv oj os pi rn sc sg sm ss to ty ve vo wa za
"""
_ROWS = [
    (short, long, names.split(","))
    for short, long, names in (row.split(None, 2) for row in _TABLE.replace("\n", "").split(";"))
]
NAMES = {short: names[0] for short, _, names in _ROWS}
"""The English name of a language by its code of two letters."""
TWO_LETTERS = {long: short for short, long, _ in _ROWS} | {
    **{"ger": "de", "fre": "fr", "dut": "nl", "chi": "zh", "cze": "cs", "gre": "el", "per": "fa"},
    **{"rum": "ro", "slo": "sk", "wel": "cy", "baq": "eu", "ice": "is", "alb": "sq", "arm": "hy"},
}
"""The code of two letters by that of three."""
_CODES = frozenset((*NAMES, *_OTHER_CODES.split()))
_BY_NAME = {
    **{name.casefold(): code for code, names in OTHER_NAMES.items() for name in names},
    **{name.casefold(): short for short, _, names in _ROWS for name in names},
}


def is_language(name: str) -> bool:
    """Whether `name` looks like a language code: de, deu, pt-BR, zh_Hans."""
    code, _, rest = name.replace("_", "-").partition("-")
    known = code.lower() in _CODES or code.lower() in TWO_LETTERS
    return known and (not rest or (rest.isalnum() and 2 <= len(rest) <= 4))


def language_named(name: str) -> str | None:
    """The code of a language given by its code or its name: `de`, `German`, `Allemand`, `German (DE)`."""
    bare = name.strip()
    if is_language(bare):
        return bare.replace("_", "-").casefold()
    return _BY_NAME.get(bare.partition("(")[0].strip().casefold())
