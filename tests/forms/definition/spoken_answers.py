# ruff: noqa: RUF001  # letters of other scripts look like Latin ones
"""Answers in the languages other than English: what people write, and what it stands for."""

from datetime import date
from typing import Final

_DAY = date(2026, 3, 3)
_APRIL = date(2026, 4, 3)

# By languages: dates that are written in several ways. None stands for a text that is refused.
DATES: Final[dict[str, dict[str, date | None]]] = {
    "de": {
        "3. März 2026": _DAY,
        "am 3. Maerz 2026": _DAY,
        "3. Jaenner 2026": date(2026, 1, 3),
        "Dienstag, 3. Mrz. 2026": _DAY,
        "03.04.2026": _APRIL,
        "03/04/2026": _APRIL,
        "3.3.26": None,
        "31.02.2026": None,
        "3. oder 4. März 2026": date(2026, 3, 4),
        "3. März 2026 oder 4. März 2026": None,
    },
    "fr": {
        "le 3 mars 2026": _DAY,
        "1er avril 2026": date(2026, 4, 1),
        "03/04/2026": _APRIL,
        "3 FÉVRIER 2026": date(2026, 2, 3),
        "3 fevrier 2026": date(2026, 2, 3),
        "3 juill. 2026": date(2026, 7, 3),
    },
    "es": {
        "3 de marzo de 2026": _DAY,
        "el 3 de marzo del 2026": _DAY,
        "3 set. 2026": date(2026, 9, 3),
        "03/04/2026": _APRIL,
    },
    "pt": {"3 de março de 2026": _DAY, "3 de marco de 2026": _DAY, "03/04/2026": _APRIL},
    "it": {
        "3 marzo 2026": _DAY,
        "il 3 marzo 2026": _DAY,
        "3 genn. 2026": date(2026, 1, 3),
        "03/04/2026": _APRIL,
    },
    "nl": {
        "3 maart 2026": _DAY,
        "03-04-2026": _APRIL,
        "3 mrt. 2026": _DAY,
        "3 febr. 2026": date(2026, 2, 3),
    },
    "pl": {
        "3 marca 2026": _DAY,
        "03.04.2026": _APRIL,
        "3 marca 2026 r.": _DAY,
        "3 III 2026": _DAY,
        "3. pazdziernika 2026": date(2026, 10, 3),
    },
    "tr": {"3 Mart 2026": _DAY, "03.04.2026": _APRIL, "3 AĞUSTOS 2026": date(2026, 8, 3)},
    "ru": {
        "3 марта 2026": _DAY,
        "3 марта 2026 г.": _DAY,
        "3-го марта 2026": _DAY,
        "3 февр. 2026": date(2026, 2, 3),
        "3 нояб. 2026 г.": date(2026, 11, 3),
    },
    "ar": {
        "٣ مارس ٢٠٢٦": _DAY,
        "3 آذار 2026": _DAY,
        "3 غشت 2026": date(2026, 8, 3),
        "٠٣/٠٤/٢٠٢٦": _APRIL,
    },
    "hi": {
        "3 मार्च 2026": _DAY,
        "३ मार्च २०२६": _DAY,
        "3 March 2026": _DAY,
        "3 अग. 2026": date(2026, 8, 3),
        "03/04/2026": _APRIL,
    },
    "ja": {
        "2026年3月3日": _DAY,
        "2026年3月3日です": _DAY,
        "２０２６年３月３日": _DAY,
        "2026/3/3": _DAY,
        "03/04/2026": None,
    },
    "zh": {"2026年3月3日": _DAY, "2026年3月3号": _DAY, "2026-3-3": _DAY, "03/04/2026": None},
}
# Times of day on the third of March, as UTC.
TIMES: Final[dict[str, dict[str, str | None]]] = {
    "de": {
        "3.3.2026 um 9 Uhr": "09:00",
        "3.3.2026, 9.30 Uhr": "09:30",
        "3. März 2026 9 Uhr 30": "09:30",
        "3.3.2026 3 Uhr nachmittags": "15:00",
        "3.3.2026, 8 Uhr frueh": "08:00",
        "2026-03-03T09:30:00Z": "09:30",
        "3.3.2026 halb 9 Uhr": None,
        "3.3.2026 14:30 MEZ": None,
        "3.3.2026": None,
    },
    "fr": {
        "3 mars 2026 à 9h30": "09:30",
        "3 mars 2026 à 15 heures": "15:00",
        "3 mars 2026 à 3h, après midi": "15:00",
    },
    "es": {
        "3 de marzo de 2026 a las 3:30 de la tarde": "15:30",
        "3 de marzo de 2026, 3:30 p. m.": "15:30",
        "3 de marzo de 2026, 15 hrs": "15:00",
    },
    "pt": {"3 de março de 2026 às 15h": "15:00", "3 de março de 2026, 9 horas de manhã": "09:00"},
    "it": {"3 marzo 2026 alle 9:30": "09:30", "3 marzo 2026 alle 9:30 di sera": "21:30"},
    "nl": {
        "3 maart 2026 om 9 uur": "09:00",
        "3 maart 2026 9 uur, avonds": "21:00",
        "3 maart 2026 half 9 uur": None,
    },
    "pl": {
        "3 marca 2026, 9:30": "09:30",
        "3 marca 2026, 9:30 wieczorem": "21:30",
        "3 marca 2026, 3:30 po poludniu": "15:30",
        "3 marca 2026 wpol do 9 h": None,
    },
    "tr": {
        "3 Mart 2026 14:30": "14:30",
        "3 Mart 2026 akşamüstü 5:30": "17:30",
        "3 Mart 2026 yaklaşık 14:30": None,
    },
    "ru": {
        "3 марта 2026 в 9 часов 30 минут": "09:30",
        "3 марта 2026 в 14:30 мск": None,
        "3 марта 2026 в 3:30 пополудни": "15:30",
    },
    "ar": {
        "٣ مارس ٢٠٢٦ ٩:٣٠ مساءً": "21:30",
        "3 مارس 2026 3:30 عصراً": "15:30",
        "3 مارس 2026 9:30 صباحاً": "09:30",
    },
    "hi": {
        "3 मार्च 2026 शाम 5 बजे": "17:00",
        "3 मार्च 2026 सवेरे 9 बजे": "09:00",
        "3 मार्च 2026 साढे 9 बजे": None,
    },
    "ja": {"2026年3月3日午後3時30分": "15:30", "2026年3月3日9時半": None},
    "zh": {
        "2026年3月3日下午3点": "15:00",
        "2026年3月3日中午12点": "12:00",
        "2026年3月3日约9点": None,
        "2026年3月3日9点30分": "09:30",
        "2026年3月3日9点半": None,
    },
}
NUMBERS: Final[dict[str, dict[str, float | None]]] = {
    "de": {
        "1.200,50": 1200.5,
        "1 200,50": 1200.5,
        "1,5": 1.5,
        "1.5": 1.5,
        "1.500": 1500,
        "1'200": 1200,
        "-3,25": -3.25,
        "etwa 12 Stück": 12,
        "zwei": 2,
        "3 Millionen": None,
        "5 oder 6": None,
        "1.2.3": None,
        "1,234.5": None,
    },
    "fr": {"1 200,50": 1200.5, "1\u202f200,50": 1200.5, "trois": 3, "deux cents": None},
    "es": {"1.200,50": 1200.5, "3,5 kg": 3.5, "2 mil": None, "cinco": 5},
    "pt": {"R$ 1.200,50": 1200.5, "três": 3, "2 milhões": None},
    "it": {"1.200,50": 1200.5, "dieci": 10},
    "nl": {"1.200,50": 1200.5, "één": 1, "anderhalf": None},
    "pl": {"1 200,50": 1200.5, "pięć": 5, "dwóch": 2, "2 tys.": None, "2 i pol": None},
    "tr": {"1.200,50": 1200.5, "üç": 3, "ALTI": 6, "oniki": 12, "5 bin": None},
    "ru": {"1 200,50": 1200.5, "пять": 5, "двух": 2, "2 тыс.": None, "2 десятка": None},
    "ar": {
        "١٢٠٠٫٥": 1200.5,
        "١٬٢٠٠": 1200,
        "1,200.50": 1200.5,
        "خمسة": 5,
        "خمسه": 5,
        "اثنا عشر": 12,
        "٣ آلاف": None,
    },
    "hi": {"1,200.50": 1200.5, "१२००": 1200, "1,00,000": 100_000, "पाँच": 5, "2 लाख": None},
    "ja": {"１２００": 1200, "約3個です": 3, "1,200.5": 1200.5, "三": 3, "五人": 5, "3万": None},
    "zh": {
        "１，２００．５": 1200.5,
        "3个": 3,
        "五": 5,
        "两位": 2,
        "十二": 12,
        "3万": None,
        "五百": None,
    },
}
SCORES: Final[dict[str, str]] = {
    "de": "3 von 5",
    "fr": "3 sur 5",
    "es": "3 de 5",
    "pt": "3 de 5",
    "it": "3 su 5",
    "nl": "3 van 5",
    "pl": "3 z 5",
    "tr": "5 üzerinden 3",
    "ru": "3 из 5",
    "ar": "٣ من ٥",
    "hi": "5 में से 3",
    "ja": "5点中3点",
    "zh": "3/5",
}
