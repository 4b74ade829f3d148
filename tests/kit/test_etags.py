"""Entity tags, and the lists of them in headers."""

import msgspec
import pytest

from app.kit.errors import PreconditionFailed
from app.kit.etags import TagList, build_tag, parse_tags, require_match


class Answer(msgspec.Struct):
    id: str
    name: str
    options: dict[str, object] = {}
    seen: int = 0


class Change(msgspec.Struct):
    name: str = ""
    options: dict[str, object] = {}
    secret: str = ""


_TAG = build_tag(Answer, [Change])


def test_lists_of_tags_are_read(subtests: pytest.Subtests) -> None:
    for header, expected in [
        ("*", TagList(is_any=True)),
        (" * ", TagList(is_any=True)),
        ('"a"', TagList(('"a"',))),
        ('""', TagList(('""',))),
        ('W/"a"', TagList(weak=('"a"',))),
        ('"a", W/"b" ,"c"', TagList(('"a"', '"c"'), ('"b"',))),
        (',"a",,', TagList(('"a"',))),
        ('"a,b"', TagList(('"a,b"',))),
        ("", None),
        (",", None),
        ("a", None),
        ('"a', None),
        ('w/"a"', None),
        ('"a" "b"', None),
        ('"a""b"', None),
        ('*, "a"', None),
        ('"a b"', None),
    ]:
        with subtests.test(header=header):
            assert parse_tags(header) == expected


def test_weak_tags_match_only_reads() -> None:
    tags = TagList(('"a"',), ('"b"',))
    assert [tags.matches_strongly(tag) for tag in ('"a"', '"b"', '"c"')] == [True, False, False]
    assert [tags.matches_weakly(tag) for tag in ('"a"', '"b"', '"c"')] == [True, True, False]


def test_a_tag_is_of_the_fields_that_can_be_changed() -> None:
    first = _TAG.compute(Answer("1", "One", {"a": 1, "b": [2]}))
    assert first == _TAG.compute(Answer("2", "One", {"b": [2], "a": 1}, 7))
    assert first == _TAG.compute({"name": "One", "options": {"b": [2], "a": 1}})
    assert first != _TAG.compute(Answer("1", "One", {"a": True, "b": [2]}))
    assert _TAG.compute({"name": "One"}) is None
    assert _TAG.compute(None) is None


def test_a_refusal_names_the_fields_that_have_changed(subtests: pytest.Subtests) -> None:
    before, after = _TAG.compute(Answer("1", "One")), Answer("1", "Two")
    for tags, expected in [
        (TagList((before or "",)), ["name"]),
        # Of these nobody can tell.
        (TagList((before or "", '"a"')), None),
        (TagList(('"a"',)), None),
    ]:
        with subtests.test(tags=tags):
            with pytest.raises(PreconditionFailed) as refusal:
                require_match(_TAG, after, tags)
            details = refusal.value.details or {}
            assert (details["current"], details.get("changed")) == (_TAG.compute(after), expected)
