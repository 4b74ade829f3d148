"""Texts that Postgres can store."""

from app.kit import texts


def test_storable_text_has_no_lone_surrogates() -> None:
    assert texts.storable("a\0b \ud83d c \u00fc") == "ab ? c \u00fc"
