"""The part of a passage that a source shows."""

import pytest

from app.domain.agents.knowledge.previews import PREVIEW_CHARS, cut_preview

_FILLER = "Some other words about nothing stand here in a row of their own. " * 8
_ANSWER = "Parcels to Norway take nine days."


def test_a_short_passage_is_shown_in_one_line_without_its_headings() -> None:
    assert cut_preview("two\n lines") == "two lines"
    assert cut_preview("A > B\n\nbody  text", "b", "A > B") == "body text"
    assert cut_preview("A > B", "b", "A > B") == "A > B"


def test_the_part_that_shares_most_with_the_query_is_shown(subtests: pytest.Subtests) -> None:
    cases = {
        "in the middle": f"{_FILLER}{_ANSWER} {_FILLER}",
        "at the start": f"{_ANSWER} {_FILLER}",
        "at the end": f"{_FILLER}{_ANSWER}",
        "in a row": _FILLER.replace(". ", "\n") + f"{_ANSWER}\n" + _FILLER.replace(". ", "\n"),
        "in a long sentence": _FILLER.replace(".", ",") + _ANSWER + _FILLER.replace(".", ","),
    }
    for name, text in cases.items():
        with subtests.test(name):
            preview = cut_preview(text, "How long does a parcel to Norway take?")
            assert _ANSWER in preview
            assert PREVIEW_CHARS - 80 < len(preview) <= PREVIEW_CHARS
            assert preview.startswith("…") == (name != "at the start")
            assert preview.endswith("…") == (name != "at the end")
            line = " ".join(text.split())
            assert f" {preview.strip('…')} " in f" {line} "


def test_a_query_without_a_word_of_the_passage_shows_what_looks_like_it() -> None:
    text = f"{_FILLER}The packaging is recycled. {_FILLER}"
    assert "packaging" in cut_preview(text, "unpackaged")


def test_any_passage_and_query_have_a_preview(subtests: pytest.Subtests) -> None:
    cases = {
        "no spaces": ("x" * 2000, "x"),
        "no query": (_FILLER, ""),
        "marks": ("?! " * 500, "?!"),
        "letters that grow": ("İ" * 500 + " word " + "İ" * 500, "word"),
        "the same word": ("pump " * 400, "pump " * 400),
    }
    for name, (text, query) in cases.items():
        with subtests.test(name):
            assert 0 < len(cut_preview(text, query)) <= PREVIEW_CHARS
