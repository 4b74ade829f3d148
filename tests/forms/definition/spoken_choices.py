# ruff: noqa: RUF001  # letters of other scripts look like Latin ones
"""Choices in the languages other than English: what people write, and what it stands for."""

from typing import Final

# Words for yes, for no, and for neither.
CONSENT: Final[dict[str, tuple[list[str], list[str], list[str]]]] = {
    "de": (
        ["ja", "Ja, gerne!", "Ich stimme zu", "OK", "na klar", "Natuerlich", "ja, genau"],
        ["Nein", "nein, danke", "ich stimme nicht zu", "lieber nicht", "keineswegs", "noe"],
        ["vielleicht", "ja, aber nicht heute", "Jaguar", "ja?", "ja und nein", "nein, weiß nicht"],
    ),
    "fr": (
        ["Oui", "oui, bien sûr", "d’accord", "J'accepte", "tout à fait", "Ça me va"],
        [
            "non",
            "Non merci",
            "je n’accepte pas",
            "pas d'accord",
            "bien sûr que non",
            "hors de question",
        ],
        ["peut-être", "oui, mais pas maintenant", "si possible", "non, je ne sais pas"],
    ),
    "es": (
        ["Sí", "si", "sí, claro", "Acepto", "de acuerdo", "sí, lo confirmo", "está bien"],
        ["No", "no, gracias", "no acepto", "por supuesto que no"],
        ["quizás", "si es posible", "sí, pero no hoy", "no estoy segura", "no sé"],
    ),
    "pt": (
        ["Sim", "sim, claro", "concordo", "exatamente"],
        ["Não", "nao", "não aceito", "de forma alguma"],
        ["talvez", "sim, mas", "não sei"],
    ),
    "it": (
        ["Sì", "sì, certo", "va bene", "Accetto", "certo che sì", "senz’altro"],
        ["No", "no grazie", "non accetto", "niente affatto"],
        ["forse", "sì, ma non oggi"],
    ),
    "nl": (
        ["Ja", "ja graag", "akkoord", "ik geef toestemming"],
        ["Nee", "nee, bedankt", "niet akkoord", "in geen geval"],
        ["misschien", "ja, indien mogelijk", "nee, weet ik niet"],
    ),
    "pl": (
        ["Tak", "tak, oczywiście", "zgadzam się", "dokladnie", "w porzadku"],
        ["Nie", "nie, dziękuję", "nie zgadzam się", "w żadnym wypadku"],
        ["może", "tak, ale nie dziś", "no", "nie wiem", "tak, o ile zdążę"],
    ),
    "tr": (
        ["Evet", "EVET", "evet, tabii", "kabul ediyorum", "tabiki", "izin veriyorum"],
        ["Hayır", "HAYIR", "hayir", "kabul etmiyorum", "izin vermiyorum", "doğru değil"],
        ["belki", "evet ama şimdi değil", "hayır, bilmiyorum"],
    ),
    "ru": (
        ["Да", "да, конечно", "согласна", "ок", "Я не против"],
        ["Нет", "нет, спасибо", "не согласен", "не надо", "я против"],
        ["может быть", "да, но не сейчас", "нет, не знаю", "да, кажется"],
    ),
    "ar": (
        ["نعم", "نعم، بالطبع", "أوافق", "حسناً", "لا مانع لدي"],
        ["لا", "لا شكرا", "لا أوافق", "أبداً"],
        ["ربما", "نعم، لكن", "نعم ولكن", "لا أعرف", "لا أعلم"],
    ),
    "hi": (
        ["हाँ", "हां", "जी हाँ", "ठीक है", "बिलकुल", "theek hai"],
        ["नहीं", "जी नहीं", "नहीं, धन्यवाद", "हरगिज नहीं"],
        ["शायद", "हाँ, लेकिन अभी नहीं", "नहीं मालूम", "हाँ, बशर्ते"],
    ),
    "ja": (
        ["はい", "はい、お願いします", "同意します", "はい、構いません", "了解しました"],
        ["いいえ", "同意しません", "いいえ、結構です", "同意いたしません", "ダメです"],
        ["たぶん", "はい、でも今日はだめです", "いや、分かりません", "はい、ただし後日"],
    ),
    "zh": (
        ["是", "是的", "好的，没问题", "我同意", "是的，确定", "對"],
        ["否", "不", "不同意", "没有", "拒絕", "不需要"],
        ["可能", "是的，但不是今天", "可以吗", "不知道", "不确定", "不一定", "不好意思"],
    ),
}
# Three options, and messages that name some of them by their numbers in the list.
OPTIONS: Final[dict[str, tuple[list[str], dict[str, list[int]]]]] = {
    "de": (
        ["Rot", "Blau", "Grün"],
        {
            "rot und blau": [1, 2],
            "alle": [1, 2, 3],
            "die zweite": [2],
            "1 und 3": [1, 3],
            "Ich möchte bitte Grün": [3],
            "blau und noch grün": [2, 3],
            "weder rot noch blau": [],
            "nicht rot": [],
            "entweder rot oder blau": [],
        },
    ),
    "fr": (
        ["Rouge", "Bleu", "Vert"],
        {
            "rouge et vert": [1, 3],
            "toutes": [1, 2, 3],
            "la deuxième": [2],
            "le 2ème": [2],
            "sauf le bleu": [],
        },
    ),
    "es": (
        ["Rojo", "Azul", "Verde"],
        {
            "rojo y verde": [1, 3],
            "todos": [1, 2, 3],
            "la segunda": [2],
            "la 2ª": [2],
            "todas las anteriores": [1, 2, 3],
            "sin azul": [],
        },
    ),
    "pt": (
        ["Vermelho", "Azul", "Verde"],
        {
            "vermelho e verde": [1, 3],
            "todas": [1, 2, 3],
            "a segunda opção": [2],
            "a 2ª": [2],
            "qualquer uma, azul ou verde": [],
            "menos azul": [],
        },
    ),
    "it": (
        ["Rosso", "Blu", "Verde"],
        {
            "rosso e verde": [1, 3],
            "tutti": [1, 2, 3],
            "la seconda": [2],
            "la 2ª": [2],
            "1 più 3": [1, 3],
            "rosso o blu, qualsiasi": [],
            "tranne blu": [],
        },
    ),
    "nl": (
        ["Rood", "Blauw", "Groen"],
        {
            "rood en groen": [1, 3],
            "allemaal": [1, 2, 3],
            "de tweede": [2],
            "de 2de": [2],
            "geen blauw": [],
        },
    ),
    "pl": (
        ["Czerwony", "Niebieski", "Zielony"],
        {
            "czerwony i zielony": [1, 3],
            "1 bądź 3": [1, 3],
            "wszystkie": [1, 2, 3],
            "druga": [2],
            "bez czerwony": [],
            "z wyjątkiem zielony": [],
            "dowolny, niebieski lub zielony": [],
        },
    ),
    "tr": (
        ["Kırmızı", "Mavi", "Yeşil"],
        {
            "kırmızı ve yeşil": [1, 3],
            "hepsi": [1, 2, 3],
            "ikinci seçenek": [2],
            "ikinciyi": [2],
            "hem mavi hem yeşil": [2, 3],
            "mavi değil": [],
        },
    ),
    "ru": (
        ["Красный", "Синий", "Зелёный"],
        {
            "красный и зелёный": [1, 3],
            "1, а ещё 3": [1, 3],
            "все": [1, 2, 3],
            "второй": [2],
            "2-й": [2],
            "3-е": [3],
            "кроме синий": [],
        },
    ),
    "ar": (
        ["أحمر", "أزرق", "أخضر"],
        {
            "أحمر أو أخضر": [1, 3],
            "أحمر وأخضر": [1, 3],
            "أريد أحمر، وأزرق وأخضر": [1, 2, 3],
            "الأول والثالث": [1, 3],
            "1 أو 3": [1, 3],
            "واحد واثنان": [1, 2],
            "أحمر وشكرا": [1],
            "أحمر والأصفر": [],
            "أحمر وبدون أزرق": [],
            "الكل": [1, 2, 3],
            "الثاني": [2],
            "ليس أزرق": [],
            "٢": [2],
        },
    ),
    "hi": (
        ["लाल", "नीला", "हरा"],
        {
            "लाल और हरा": [1, 3],
            "सभी": [1, 2, 3],
            "दूसरा": [2],
            "द्वितीय": [2],
            "लाल अथवा हरा": [1, 3],
            "नीला नहीं": [],
            "लाल या नीला, कोई भी": [],
        },
    ),
    "ja": (
        ["赤", "青", "緑"],
        {
            "赤と緑": [1, 3],
            "赤と緑をお願いします": [1, 3],
            "全部": [1, 2, 3],
            "2番": [2],
            "二つ目": [2],
            "赤もしくは緑": [1, 3],
            "赤ではなく": [],
            "全部お願いします": [1, 2, 3],
            "青以外": [],
            "二番目": [2],
        },
    ),
    "zh": (
        ["红色", "蓝色", "绿色"],
        {
            "红色和绿色": [1, 3],
            "我要红色和绿色": [1, 3],
            "全部": [1, 2, 3],
            "第二个": [2],
            "我選第二個": [2],
            "红色加上绿色": [1, 3],
            "以上都是": [1, 2, 3],
            "不要蓝色": [],
        },
    ),
}
