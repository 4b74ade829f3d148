"""What other areas may call."""

from app.domain.forms.definition import (
    conditions,
    live,
    options,
    queries,
    recipient_queries,
    recipients,
    visibility,
)
from app.domain.forms.definition.definitions import FormDefinition
from app.domain.forms.definition.fields import patterns
from app.domain.forms.definition.fields.definition import Conditional, Field, FieldTypeName
from app.domain.forms.definition.fields.files import FileRules
from app.domain.forms.definition.fields.options import Option
from app.domain.forms.definition.fields.protocol import InputField, MissingAnswer
from app.domain.forms.definition.live import NO_MODEL, LiveForm
from app.domain.forms.definition.queries import count_sql, list_inputs
from app.domain.forms.definition.service import create, publish, rate, require
