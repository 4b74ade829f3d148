"""The types of fields. A new one is a class in one of the files beside this one and a row here."""

from typing import Any, Final

from .choices import CheckboxField, CheckboxGroupField, MultiSelectField, RadioField, SelectField
from .dates import DateField, DatetimeField
from .numbers import NumberField, RatingField, SliderField
from .protocol import FieldType
from .static import PageBreakField, ParagraphField, SectionField
from .texts import EmailField, HiddenField, PhoneField, TextareaField, TextField, UrlField
from .uploads import FileField, SignatureField

FIELD_TYPES: Final[dict[str, FieldType[Any]]] = {
    kind.name: kind
    for kind in (
        TextField(),
        TextareaField(),
        EmailField(),
        PhoneField(),
        NumberField(),
        SelectField(),
        MultiSelectField(),
        CheckboxField(),
        CheckboxGroupField(),
        RadioField(),
        DateField(),
        DatetimeField(),
        FileField(),
        UrlField(),
        HiddenField(),
        SectionField(),
        ParagraphField(),
        PageBreakField(),
        SignatureField(),
        RatingField(),
        SliderField(),
    )
}
# Those that show something and are not answered.
STATIC_TYPES: Final = [kind.name for kind in FIELD_TYPES.values() if not kind.has_value]
