"""Which passages a reply cites by their numbers."""

import pytest

from app.domain.sources import SourceView, select_cited

_PASSAGES = [SourceView(f"{n}.md", "text", 0.5, {"document_id": f"doc_{n}"}) for n in (1, 2, 3)]


def test_cited_passages_have_their_number_and_the_others_are_dropped(
    subtests: pytest.Subtests,
) -> None:
    cases = {
        "At eleven [1].": [1],
        "At eleven [2][3].": [2, 3],
        "At eleven [3, 1]. Again [3].": [1, 3],
        "A link [2](https://a.example).": [2],
        "One that exists [2] and one that does not [9].": [2],
    }
    for text, numbers in cases.items():
        with subtests.test(text):
            cited = select_cited(text, _PASSAGES)
            assert [source.metadata["number"] for source in cited] == numbers
            assert [source.document_name for source in cited] == [f"{n}.md" for n in numbers]
    assert all("number" not in source.metadata for source in _PASSAGES)


def test_a_text_that_cites_none_keeps_all_without_numbers(subtests: pytest.Subtests) -> None:
    for text in ("", "At eleven.", "[9]", "[0]", "[a]", "[1.5]", "list[int]", "[2026]", "1"):
        with subtests.test(text):
            assert select_cited(text, _PASSAGES) == _PASSAGES
