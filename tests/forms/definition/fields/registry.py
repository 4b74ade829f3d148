"""The cases of all types of fields."""

from importlib import import_module

from app.domain.forms.definition.fields.registry import FIELD_TYPES
from tests.forms.definition.fields.protocol import Cases

_NAMES = dict.fromkeys(type(kind).__module__.rpartition(".")[2] for kind in FIELD_TYPES.values())
_ALL: list[Cases] = [import_module(f"{__package__}.{name}").CASES for name in _NAMES]

GOOD = [row for cases in _ALL for row in cases.good]
BAD = [row for cases in _ALL for row in cases.bad]
MESSAGES = [row for cases in _ALL for row in cases.messages]
WRONG_RULES = [row for cases in _ALL for row in cases.wrong_rules]
VALUES = {name: item for cases in _ALL for name, item in cases.values.items()}
RULES = {name: item for cases in _ALL for name, item in cases.rules.items()}
OPERANDS = {name: item for cases in _ALL for name, item in cases.operands.items()}
IS_STORED = {name: item for cases in _ALL for name, item in cases.is_stored.items()}
