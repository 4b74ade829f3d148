# ruff: noqa: RUF001  # letters of other scripts look like Latin ones
"""Messages in languages other than English, and the answers that they contain."""

from typing import Any, Final

MAIL: Final = "bob@example.com"

# By languages: labels of the fields name, email, topic and guests, and two options of the topic.
LABELS: Final[dict[str, tuple[str, str, str, str, str, str]]] = {
    "de": (
        "Ihr Name",
        "Ihre E-Mail-Adresse",
        "Worum geht es?",
        "Anzahl der Gäste",
        "Verkauf",
        "Hilfe",
    ),
    "fr": (
        "Votre nom",
        "Votre adresse e-mail",
        "De quoi s’agit-il ?",
        "Nombre d’invités",
        "Vente",
        "Aide",
    ),
    "es": (
        "Su nombre",
        "Su correo electrónico",
        "¿De qué se trata?",
        "Número de invitados",
        "Ventas",
        "Ayuda",
    ),
    "pt": (
        "Seu nome",
        "Seu e-mail",
        "Qual é o assunto?",
        "Número de convidados",
        "Vendas",
        "Ajuda",
    ),
    "it": (
        "Il Suo nome",
        "Il Suo indirizzo e-mail",
        "Di cosa si tratta?",
        "Numero di ospiti",
        "Vendite",
        "Aiuto",
    ),
    "nl": ("Uw naam", "Uw e-mailadres", "Waar gaat het over?", "Aantal gasten", "Verkoop", "Hulp"),
    "pl": ("Imię", "Adres e-mail", "Czego dotyczy sprawa?", "Liczba gości", "Sprzedaż", "Pomoc"),
    "tr": ("Adınız", "E-posta adresiniz", "Konu nedir?", "Konuk sayısı", "Satış", "Yardım"),
    "ru": (
        "Ваше имя",
        "Электронная почта",
        "О чём идёт речь?",
        "Количество гостей",
        "Продажи",
        "Помощь",
    ),
    "ar": ("الاسم", "البريد الإلكتروني", "ما الموضوع؟", "عدد الضيوف", "المبيعات", "المساعدة"),
    "hi": ("आपका नाम", "आपका ई-मेल", "विषय क्या है?", "मेहमानों की संख्या", "बिक्री", "सहायता"),
    "ja": ("お名前", "メールアドレス", "ご用件は何ですか？", "人数", "販売", "サポート"),
    "zh": ("您的姓名", "电子邮箱", "请问是关于什么？", "客人数量", "销售", "帮助"),
}
# The field that was asked for, a message, and the values that it stands for; None for a skipped
# question, and {} for a message that answers nothing.
MESSAGES: Final[dict[str, list[tuple[str, str, dict[str, Any] | None]]]] = {
    "de": [
        ("name", "Hallo, ich heiße Ada", {"name": "Ada"}),
        ("name", "Mein Name ist Ada Lovelace.", {"name": "Ada Lovelace"}),
        ("name", "Guten Tag!", {}),
        ("name", "Wozu brauchen Sie das?", {}),
        ("topic", "Eigentlich ist meine E-Mail bob@example.com", {"email": MAIL}),
        ("topic", "Entschuldigung, mein Name ist Bob", {"name": "Bob"}),
        ("topic", "Korrektur: bob@example.com", {"email": MAIL}),
        ("topic", "ändere die E-Mail-Adresse auf bob@example.com", {"email": MAIL}),
        ("topic", "Hilfe, und die Anzahl der Gäste ist 5", {"topic": "help", "guests": 5}),
        ("topic", "überspringen", None),
        ("topic", "keine Angabe", None),
        ("topic", "Naechste Frage", None),
        ("topic", "aendere die E-Mail auf bob@example.com", {"email": MAIL}),
    ],
    "fr": [
        ("name", "Bonjour, je m’appelle Ada", {"name": "Ada"}),
        ("topic", "En fait, mon e-mail est bob@example.com", {"email": MAIL}),
        ("topic", "pardon, mon nom est Bob", {"name": "Bob"}),
        ("topic", "passer", None),
        ("topic", "Je ne souhaite pas répondre.", None),
        ("topic", "je me suis trompée, mon nom est Bob", {"name": "Bob"}),
        ("name", "Pourquoi cette question ?", {}),
    ],
    "es": [
        ("name", "Hola, me llamo Ada", {"name": "Ada"}),
        ("topic", "En realidad mi correo es bob@example.com", {"email": MAIL}),
        ("topic", "perdón, mi nombre es Bob", {"name": "Bob"}),
        ("topic", "omitir", None),
        ("topic", "Prefiero no contestar", None),
        ("name", "¿Por qué quieren saberlo?", {}),
        ("name", "Buenos días, ¿lo necesitan?", {}),
        ("name", "A", {"name": "A"}),
    ],
    "pt": [
        ("name", "Olá, meu nome é Ada", {"name": "Ada"}),
        ("topic", "Na verdade, meu e-mail é bob@example.com", {"email": MAIL}),
        ("topic", "pular", None),
        ("topic", "não quero responder", None),
        ("name", "Para que serve isto?", {}),
        ("topic", "me enganei, meu nome é Bob", {"name": "Bob"}),
    ],
    "it": [
        ("name", "Buongiorno, mi chiamo Ada", {"name": "Ada"}),
        ("topic", "In realtà la mia e-mail è bob@example.com", {"email": MAIL}),
        ("topic", "salta", None),
        ("topic", "domanda successiva", None),
        ("name", "A cosa serve?", {}),
        ("topic", "mi correggo, il mio nome è Bob", {"name": "Bob"}),
    ],
    "nl": [
        ("name", "Hallo, ik heet Ada", {"name": "Ada"}),
        ("topic", "Eigenlijk is mijn e-mail bob@example.com", {"email": MAIL}),
        ("topic", "mijn naam is Bob", {"name": "Bob"}),
        ("topic", "overslaan", None),
        ("topic", "Sla deze vraag over", None),
        ("topic", "ik heb me vergist, mijn naam is Bob", {"name": "Bob"}),
    ],
    "pl": [
        ("name", "Dzień dobry, nazywam się Ada", {"name": "Ada"}),
        ("topic", "Właściwie mój e-mail to bob@example.com", {"email": MAIL}),
        ("topic", "pomiń", None),
    ],
    "tr": [
        ("name", "Merhaba, benim adım Ada", {"name": "Ada"}),
        ("topic", "Aslında e-postam bob@example.com", {"email": MAIL}),
        ("topic", "atla", None),
    ],
    "ru": [
        ("name", "Здравствуйте, меня зовут Ада", {"name": "Ада"}),
        ("topic", "На самом деле моя почта bob@example.com", {"email": MAIL}),
        ("topic", "моё имя — Боб", {"name": "Боб"}),
        ("topic", "пропустить", None),
    ],
    "ar": [
        ("name", "مرحبا، اسمي آدا", {"name": "آدا"}),
        ("topic", "في الواقع بريدي الإلكتروني هو bob@example.com", {"email": MAIL}),
        ("topic", "تخطي", None),
    ],
    "hi": [
        ("name", "नमस्ते, मेरा नाम आदा है", {"name": "आदा"}),
        ("topic", "दरअसल मेरा ई-मेल bob@example.com है", {"email": MAIL}),
        ("topic", "छोड़ें", None),
    ],
    "ja": [
        ("name", "こんにちは、私の名前はエイダです", {"name": "エイダ"}),
        ("name", "エイダと申します", {"name": "エイダ"}),
        ("topic", "実は、メールアドレスは bob@example.com です", {"email": MAIL}),
        ("topic", "すみません、名前をボブに変更してください", {"name": "ボブ"}),
        ("topic", "スキップ", None),
    ],
    "zh": [
        ("name", "你好，我叫艾达", {"name": "艾达"}),
        ("topic", "其实我的邮箱是bob@example.com", {"email": MAIL}),
        ("topic", "抱歉，姓名改成鲍勃", {"name": "鲍勃"}),
        ("topic", "跳过", None),
    ],
}
