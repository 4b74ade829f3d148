"""Which language a visitor is spoken to in."""

import pytest

from app.kit.languages import direction_of, find_language, negotiate


def test_a_tag_names_a_language(subtests: pytest.Subtests) -> None:
    for tag, expected in [
        ("de", "de"),
        ("DE-at", "de"),
        ("pt-BR", "pt"),
        ("pt_BR", "pt"),
        ("zh-Hant-TW", "zh"),
        (" fr ", "fr"),
        ("sv", None),
        ("english", None),
        ("", None),
        (None, None),
    ]:
        with subtests.test(tag=tag):
            assert find_language(tag) == expected


def test_a_browser_says_what_it_prefers(subtests: pytest.Subtests) -> None:
    for header, expected in [
        ("de-DE,de;q=0.9,en;q=0.8", "de"),
        ("sv, fr;q=0.5, en;q=0.7", "en"),
        ("en;q=0.3, nl", "nl"),
        ("de;q=0, it", "it"),
        ("ja, zh", "ja"),
        ("*", None),
        ("sv", None),
        ("de;q=nonsense, pl", "pl"),
        ("", None),
        (None, None),
        ("x" * 100_000 + ", de", None),
    ]:
        with subtests.test(header=(header or "")[:40]):
            assert negotiate(header) == expected


def test_arabic_is_written_from_right_to_left() -> None:
    assert (direction_of("ar"), direction_of("en")) == ("rtl", "ltr")
