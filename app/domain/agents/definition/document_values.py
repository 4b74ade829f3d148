"""The values that documents have, and that filters ask for.

Items of lists have no pattern: msgspec would match each of them before it counts them.
"""

from collections.abc import Iterable
from typing import Annotated

from msgspec import Meta

from app.kit.validation import describe_pattern
from app.kit.value_checks import MAX_INTEGER

_LANGUAGE = r"^(?![\s\S]*\n)[a-z]{2,3}$"
describe_pattern(_LANGUAGE, "must be the code of a language, like de")

# A tag, a group or the name of a field.
Label = Annotated[str, Meta(min_length=1, max_length=50)]
Labels = Annotated[list[Label], Meta(max_length=20)]
LanguageCode = Annotated[str, Meta(pattern=_LANGUAGE)]
FieldValue = (
    Annotated[str, Meta(max_length=500)]
    | Annotated[int, Meta(ge=-MAX_INTEGER, le=MAX_INTEGER)]
    | float
    | bool
)
FieldValues = Annotated[dict[Label, FieldValue], Meta(max_length=20)]


def trim_labels(labels: Iterable[str]) -> list[str]:
    """Returns each label once, without the spaces around it."""
    return list(dict.fromkeys(label.strip() for label in labels))
