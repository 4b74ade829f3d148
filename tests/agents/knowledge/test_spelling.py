"""Which words count as mistyped, and which words they may stand for."""

import time

import pytest

from app.domain.agents.knowledge.spelling import (
    is_like_function_word,
    list_correctable,
    list_similar,
    measure_distance,
)


def test_a_mistake_is_a_letter_more_less_swapped_or_mistaken(subtests: pytest.Subtests) -> None:
    for first, second, distance in (
        ("garantie", "garantie", 0),
        ("garanty", "garant", 1),
        ("databse", "database", 1),
        ("conection", "connection", 1),
        ("voltahe", "voltage", 1),
        ("nabegador", "navegador", 1),
        ("seperate", "separate", 1),
        ("practise", "practice", 1),
        ("carillas", "casillas", 2),
        ("sevilla", "semilla", 2),
        ("retrun", "return", 1),
        ("lenght", "length", 1),
        ("tokenzier", "tokenizer", 1),
        ("environemnt", "enviroment", 2),
        ("schedlue", "shedule", 2),
        ("abcd", "badc", 2),
        ("pump", "valve", 3),
        ("", "pump", 3),
        ("garantía", "garantia", 1),
        ("гарантя", "гарантия", 1),
    ):
        for one, other in ((first, second), (second, first)):
            with subtests.test(one=one, other=other):
                assert measure_distance(one, other, 2) == distance
                for limit in (0, 1):
                    assert measure_distance(one, other, limit) == min(distance, limit + 1)


def test_short_words_may_have_one_mistake_and_longer_ones_two(subtests: pytest.Subtests) -> None:
    texts = [
        "The return of a pump, fewer.",
        "Returns need a receipt: the guarantee lasts long. Pumps",
        "environment, sevilla",
    ]
    for word, expected in (
        ("retrun", ["return"]),
        ("erturn", ["return"]),
        ("xeturn", []),
        ("garantee", ["guarantee"]),
        ("garanttee", []),
        ("enviromnet", ["environment"]),
        ("envirmnet", []),
        ("semilla", []),
        ("reciept", ["receipt"]),
        ("rciept", []),
        ("return", ["return"]),
        ("returnz", ["return", "returns"]),
        ("zzzz", []),
    ):
        with subtests.test(word=word):
            assert list_similar(word, texts) == expected


def test_of_equally_near_words_two_are_taken_the_most_frequent_first() -> None:
    texts = ["water", "winter water", "waiter", "wider water winter"]
    assert list_similar("witer", texts) == ["water", "winter"]


def test_numbers_short_words_and_function_words_are_not_corrected(
    subtests: pytest.Subtests,
) -> None:
    for text, expected in (
        ("How do I retrun the pmup?", ["retrun"]),
        ("Is the AX210 at 1234 ok?", []),
        ("Wie lange gilt die Garanite?", ["garanite"]),
        ("泵的保修期是多久", []),
        ("ポンプの保証期間は", []),
        ("보증 기간이얼마나", []),
        ("รับประกันกี่ปี", []),
        ("Какая гарантя", ["какая", "гарантя"]),
        ("x" * 41, []),
        ("", []),
    ):
        with subtests.test(text=text):
            assert list_correctable(text) == expected
    assert is_like_function_word("whcih", "whcih pump do I need")
    assert not is_like_function_word("retrun", "which retrun do I need")


def test_long_texts_are_read_fast() -> None:
    texts = ["rerurn " * 300, "a" * 2000, "retrunretrun" * 150, "re" * 1000] * 12
    started = time.process_time()
    assert list_similar("retrun", texts) == []
    assert time.process_time() - started < 0.1
