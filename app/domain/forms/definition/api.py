"""What other areas may call."""

from . import conditions, live, options, queries, recipient_queries, recipients, visibility
from .definitions import FormDefinition
from .fields import language_tables, links, patterns, wordings
from .fields.definition import Conditional, Field, FieldTypeName
from .fields.files import FileRules
from .fields.options import Option
from .fields.protocol import InputField, MissingAnswer
from .fields.wordings import say
from .live import NO_MODEL, LiveForm
from .queries import count_sql, list_inputs
from .service import create, publish, rate, require
