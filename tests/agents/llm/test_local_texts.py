"""What the local model says again and again, or repeats of its prompt, is left out."""

import pytest

from app.domain.agents.llm.local_texts import TextFilter

_CASES = {
    "an ordinary answer": ("We open at nine. See you!", "We open at nine. See you!"),
    "a sentence said twice": (
        "The price can vary.\n\nThe price of a gift varies. The price of a gift varies. It",
        "The price can vary.\n\nThe price of a gift varies.",
    ),
    "a paragraph said twice": ("We open at nine in May.\n\nWe open at nine in May.\n\nWe open", ""),
    "a repetition that is cut off": (
        "We open at nine in the morning. We open at nine in the mor",
        "We open at nine in the morning.",
    ),
    "short sentences": ("Yes. Yes. No.", "Yes. Yes. No."),
    "items of a list": ("- one\n- two\n- one", "- one\n- two\n- one"),
    "another end": (
        "We open at nine in May. We open at nine in June.",
        "We open at nine in May. We open at nine in June.",
    ),
    "a sentence about the prompt": (
        "Gifts cost 4 euros.\nThe passage is quoted material between lines with === ab. Bye.",
        "Gifts cost 4 euros. Bye.",
    ),
    "a boundary": ("=== 1a2b3c [1] faq.html\nIt is 4 euros.", "\nIt is 4 euros."),
    "an empty answer": ("", ""),
    "space around": ("  Hello there.  ", "  Hello there."),
    "code": ("Try this:\n```\nx = 1\nx = 1\n```", "Try this:\n```\nx = 1\nx = 1\n```"),
}


@pytest.mark.parametrize("size", [1, 3, 1000])
def test_an_answer_is_passed_on_without_noise(size: int, subtests: pytest.Subtests) -> None:
    for name, (said, passed) in _CASES.items():
        with subtests.test(name):
            texts, parts = TextFilter(), list[str]()
            for start in range(0, len(said), size):
                parts.append(texts.add(said[start : start + size]))
                if texts.is_over:
                    break
            expected = passed or said.partition("\n\n")[0]
            assert "".join([*parts, texts.finish()]) == expected


def test_only_what_may_be_unwanted_waits() -> None:
    texts = TextFilter()
    assert texts.add("We open ") == "We open"
    assert texts.add("at nine. We") == " at nine."
    assert texts.add(" open") == ""
    assert texts.add(" late") == " We open late"
    assert texts.finish() == ""


def test_an_answer_that_repeats_itself_is_over() -> None:
    texts = TextFilter()
    texts.add("We open at nine in May. We open at nine in May. ")
    assert texts.is_over
    assert texts.add("More.") == ""
