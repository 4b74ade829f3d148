"""Entity tags of records, and the lists of them in If-Match and If-None-Match.

A tag has a hash of each field that a PUT or PATCH of the record can change, so that a counter or a
time of use does not change it, and two tags tell which fields differ.
"""

import base64
import hashlib
import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final

import msgspec

from app.kit.errors import Invalid, PreconditionFailed

# Of one field, in base64.
_HASH_CHARS: Final = 8
_HASH_BYTES: Final = 6
_ITEM = re.compile(r'[ \t,]*(W/)?("[\x21\x23-\x7e\x80-\xff]*")[ \t]*(?=,|$)')
_REST = re.compile(r"[ \t,]*$")


class TagList(msgspec.Struct, frozen=True):
    """The tags of a header; `*` stands for any."""

    strong: tuple[str, ...] = ()
    weak: tuple[str, ...] = ()
    is_any: bool = False

    def matches_strongly(self, tag: str) -> bool:
        """As If-Match compares: a weak tag never matches."""
        return self.is_any or tag in self.strong

    def matches_weakly(self, tag: str) -> bool:
        """As If-None-Match compares."""
        return self.is_any or tag in self.strong or tag in self.weak


def parse_tags(header: str) -> TagList | None:
    """Returns None for a header that is not valid."""
    if header.strip(" \t") == "*":
        return TagList(is_any=True)
    tags: dict[bool, list[str]] = {False: [], True: []}
    position = 0
    while match := _ITEM.match(header, position):
        tags[match[1] is not None].append(match[2])
        position = match.end()
    if not any(tags.values()) or not _REST.match(header, position):
        return None
    return TagList(tuple(tags[False]), tuple(tags[True]))


def read_tags(name: str, text: str) -> TagList:
    """Raises Invalid for the field or header of that name."""
    tags = parse_tags(text)
    if tags is None:
        raise Invalid.field(name, 'must be * or a list of entity tags, like "4Sx0a_2k"')
    return tags


class RecordTag(msgspec.Struct, frozen=True):
    """How the tag of a kind of record is computed: from these fields of its answers, by the names
    of their attributes, each with the name that clients see.
    """

    fields: Mapping[str, str]

    def compute(self, answer: object) -> str | None:
        """Returns the tag of a struct, or of an answer that was decoded from JSON. None for an
        answer that does not show the record.
        """
        values = _read_values(answer, self.fields)
        if values is None:
            return None
        return f'"{"".join(map(_hash, values))}"'

    def find_changed(self, before: str, after: str) -> list[str] | None:
        """Returns the names of the fields whose hashes differ; None where one is not such a tag."""
        if len(before) != len(after):
            return None
        pairs = zip(_split(before), _split(after), strict=True)
        return [
            name for name, (old, new) in zip(self.fields.values(), pairs, strict=True) if old != new
        ]


def build_tag(
    answer: type[msgspec.Struct],
    bodies: Iterable[type[msgspec.Struct]],
    tagged: Iterable[str] = (),
) -> RecordTag:
    """The fields of the answer that one of the bodies has too, and those that `tagged` names. They
    are in the order of their names: answers that show the same record may have another.
    """
    changeable: Collection[str] = {
        *(name for body in bodies for name in body.__struct_fields__),
        *tagged,
    }
    return RecordTag(
        {
            field.name: field.encode_name
            for field in sorted(msgspec.structs.fields(answer), key=lambda it: it.encode_name)
            if field.name in changeable
        }
    )


def require_match(tag: RecordTag, answer: object, tags: TagList) -> None:
    """Raises PreconditionFailed unless If-Match has the tag of the answer."""
    current = tag.compute(answer)
    if current is None or tags.matches_strongly(current):
        return
    details: dict[str, Any] = {"current": current}
    if len(tags.strong) == 1:
        changed = tag.find_changed(tags.strong[0], current)
        details |= {"changed": changed} if changed else {}
    raise PreconditionFailed(
        "This record has changed since you read it. Read it again, and send the change with its "
        "new ETag",
        details=details,
        headers={"ETag": current},
    )


def require_no_match(tag: RecordTag, answer: object, tags: TagList) -> None:
    """Raises PreconditionFailed if If-None-Match has the tag of the answer, or `*`."""
    current = tag.compute(answer)
    if current is None or not tags.matches_weakly(current):
        return
    raise PreconditionFailed(
        "This record exists already. Read it, and send the change with its ETag as If-Match",
        details={"current": current},
        headers={"ETag": current},
    )


def _read_values(answer: object, fields: Mapping[str, str]) -> list[object] | None:
    """Returns None unless the answer has all fields. A field of a struct may be unset."""
    try:
        if isinstance(answer, dict):
            return [answer[name] for name in fields.values()]
        return [getattr(answer, name) for name in fields]
    except (KeyError, AttributeError):
        return None


def _hash(value: Any) -> str:
    # Sorted: a stored object may have its keys in another order than the one that was sent.
    encoded = b"" if value is msgspec.UNSET else msgspec.json.encode(value, order="sorted")
    digest = hashlib.blake2b(encoded, digest_size=_HASH_BYTES).digest()
    return base64.urlsafe_b64encode(digest).decode()


def _split(tag: str) -> list[str]:
    text = tag.strip('"')
    return [text[start : start + _HASH_CHARS] for start in range(0, len(text), _HASH_CHARS)]
