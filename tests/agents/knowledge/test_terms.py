"""How texts and questions are cut into terms, in the languages of documents."""

import pytest

from app.domain.agents.knowledge import languages
from app.domain.agents.knowledge.terms import list_terms

_SENTENCES = {
    "en": "The shops open at nine in the morning.",
    "de": "Die Läden öffnen um neun Uhr morgens.",
    "fr": "Les magasins ouvrent à neuf heures du matin.",
    "es": "Las tiendas abren a las nueve de la mañana.",
    "zh": "商店早上九点开门。",
    "ar": "تفتح المتاجر في الساعة التاسعة صباحا.",
    "ja": "店は朝九時に開きます。",
    "ko": "가게는 아침 아홉 시에 문을 엽니다.",
    "th": "ร้านค้าเปิดเวลาเก้าโมงเช้า",
    "ru": "Магазины открываются в девять часов утра.",
    "no": "Butikkene åpner klokken ni om morgenen.",
}


def test_the_language_of_a_sentence_is_told(subtests: pytest.Subtests) -> None:
    for code, sentence in _SENTENCES.items():
        with subtests.test(code):
            assert languages.tell([sentence]) == code


def test_the_language_is_that_of_the_beginning_and_unknown_without_words() -> None:
    assert languages.tell([_SENTENCES["de"] * 60, _SENTENCES["en"] * 600]) == "de"
    for texts in ([], [""], ["12 | 13,5 | --- | x"], ["FAQ"]):
        assert languages.tell(texts) is None


@pytest.mark.parametrize(
    ("language", "passage", "question"),
    [
        ("en", "Opening hours of our shops", "open shop hour"),
        ("de", "Öffnungszeiten der Läden", "oeffnungszeit laden öffnungszeit"),
        ("fr", "Les magasins ouvrent", "magasin ouvrir"),
        ("es", "Las tiendas abren", "tienda abre"),
        ("ar", "المدرسة المدارس", "مدرسة"),
        ("ru", "магазины", "магазин"),
        ("zh", "我们的商店早上九点开门", "商店几点开门"),
        ("ja", "お店は九時に開きます", "店は何時に開"),
        ("ko", "가게는 아홉 시에 문을 엽니다", "가게 문이 아홉"),
        ("th", "ร้านค้าเปิดเวลาเก้าโมง", "เปิด"),
        ("en", "set max_connections to 200", "max connections"),
        ("en", "\uff21\uff22\uff23 \ufb01le", "abc file"),
        (None, "Pumpe AX-200", "ax 200"),
    ],
)
def test_a_question_shares_terms_with_its_passage(
    language: str | None, passage: str, question: str
) -> None:
    terms = list_terms(question, [language])
    shared = set(terms) & set(list_terms(passage, [language]))
    assert len(shared) >= min(2, len(set(terms)) / 2), terms


def test_a_question_is_cut_by_all_languages_of_the_documents() -> None:
    terms = list_terms("Haltestellen stations", ["de", "en", None])
    assert {*list_terms("Haltestelle", ["de"]), *list_terms("station", ["en"])} <= set(terms)
    assert len(terms) == len(set(terms))


def test_vowel_signs_do_not_cut_words() -> None:
    assert list_terms("हिन्दी की", []) == ["हिन्दी", "की"]


def test_a_long_token_is_cut_and_marks_give_none() -> None:
    assert [len(term) for term in list_terms("x" * 500, ["en"])] == [40]
    assert list_terms("?! -- ((", ["en"]) == []
