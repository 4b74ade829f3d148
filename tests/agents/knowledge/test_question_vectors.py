"""Which encoders compare a question with passages. Needs the packages of
`requirements-encoder.lock`.
"""

import pytest

from app.domain.agents.definition.api import KnowledgeInfo
from app.domain.agents.knowledge.encoders import english, multilingual
from app.domain.agents.knowledge.encoders.registry import SentenceEncoders, are_installed
from app.domain.agents.knowledge.local_embedder import NAME
from app.domain.agents.knowledge.question_languages import may_be_english
from app.domain.agents.knowledge.question_vectors import encode_question
from app.services import Services

_ENGLISH, _OTHERS = english.INFO.name, multilingual.INFO.name
_BOTH = [_ENGLISH, _OTHERS]
_FRENCH = "Comment est-ce que je peux imprimer une page ?"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("How do I print a page?", True),
        ("print page", True),
        ("naïve café", True),
        ("404", True),
        ("", True),
        (_FRENCH, False),
        ("Wie drucke ich eine Seite?", False),
        ("¿Cómo imprimo una página?", False),
        ("怎样用 Calc 打印", False),
        ("Как распечатать страницу?", False),
        ("كيف أطبع صفحة؟", False),
    ],
)
def test_a_question_may_be_english_unless_it_is_of_another_language(
    text: str, *, expected: bool
) -> None:
    assert may_be_english(text) == expected


@pytest.mark.skipif(not are_installed(), reason="the encoders are not installed")
@pytest.mark.parametrize(
    ("languages", "encoders", "question", "expected"),
    [
        (["en", "fr"], _BOTH, "print page", _BOTH),
        (["en", "fr"], _BOTH, _FRENCH, [_OTHERS]),
        # No passage is in the language of the question.
        (["en"], _BOTH, _FRENCH, _BOTH),
        # No passage in French is encoded yet.
        (["en", "fr"], [_ENGLISH], _FRENCH, [_ENGLISH]),
    ],
)
async def test_an_english_encoder_leaves_questions_in_other_languages_to_others(
    services: Services,
    monkeypatch: pytest.MonkeyPatch,
    languages: list[str],
    encoders: list[str],
    question: str,
    expected: list[str],
) -> None:
    monkeypatch.setattr(services.get(SentenceEncoders), "enabled", True)
    base = KnowledgeInfo("agt_1", 1, 1, NAME, languages=languages, encoders=encoders)
    vectors = await encode_question(services, "tnt_1", base, question)
    assert list(vectors.encodings) == expected
