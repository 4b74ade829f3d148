"""Conditions in CEL. Its Rust library can neither be stopped nor limited: this process is."""

import re
import sys
from collections.abc import Mapping
from functools import lru_cache
from types import ModuleType
from typing import Any

# The package imports its command line, with prompt_toolkit, which takes 0.2 s.
sys.modules.setdefault("cel.cli", ModuleType("cel.cli"))
import cel  # noqa: E402  # after the stub of its command line

from app.templating.evaluation.problems import LimitProblem, Problem  # noqa: E402  # the same
from app.templating.evaluation.values import type_name  # noqa: E402  # the same

MAX_SOURCE = 20_000
_MAX_BRACKETS = 40
_MAX_CACHED_SOURCE = 4_000
_CACHED_PROGRAMS = 256
_TYPE_NAMES = {
    *("bool", "bytes", "double", "duration", "int", "list", "map", "null_type", "string"),
    *("timestamp", "type", "uint"),
}
_FUNCTIONS = {
    *("size", "contains", "startsWith", "endsWith", "matches", "bool", "bytes", "double", "dyn"),
    *("duration", "int", "string", "timestamp", "type", "uint", "getDate", "getDayOfMonth"),
    *("getDayOfWeek", "getDayOfYear", "getFullYear", "getHours", "getMilliseconds"),
    *("getMinutes", "getMonth", "getSeconds"),
}
# Strings and comments, which are skipped, or a macro that binds a name, or a bracket.
_TOKEN = re.compile(
    r'[rRbB]{0,2}(?:"""(?s:.*?)"""|\'\'\'(?s:.*?)\'\'\'|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\')'
    r"|//[^\n]*"
    r"|\.\s*(?:all|exists|exists_one|existsOne|map|filter)\s*\(\s*(?P<name>[A-Za-z_]\w*)\s*,"
    r"|(?P<open>[(\[{?])|(?P<close>[)\]}:])"
)
_PARSE_ERROR = re.compile(r"<input>:(\d+):(\d+): (.*)")
_QUOTED = re.compile(r"'([^']*)'")


class CompiledCondition:
    """`names` are the values that the condition uses."""

    __slots__ = ("_program", "_used", "functions", "names")

    def __init__(self, source: str) -> None:
        bound_names = _scan(source)
        try:
            self._program = cel.compile(source)
        except (ValueError, RuntimeError) as error:
            raise Problem(_describe_parse_error(str(error))) from None
        self._used = frozenset(self._program.variables())
        self.names = self._used - bound_names - _TYPE_NAMES
        operators = re.compile(r"[A-Za-z]\w*\Z")
        self.functions = frozenset(filter(operators.match, self._program.functions()))

    def check_functions(self) -> None:
        for name in sorted(self.functions - _FUNCTIONS):
            raise Problem(f"the function {name[:50]!r} is unknown")

    def evaluate(self, values: Mapping[str, Any]) -> bool:
        context = {name: values[name] for name in self._used if name in values}
        try:
            result = self._program.execute(context)
        except (MemoryError, RecursionError):
            raise
        except Exception as error:  # noqa: BLE001  # any error of CEL is the author's
            raise Problem(_describe(error)) from None
        if not isinstance(result, bool):
            raise Problem(f"a condition must be true or false, not {_describe_type(result)}")
        return result


def _describe_type(value: Any) -> str:
    name = type_name(value)
    return name if name != "a function" else f"a {type(value).__name__}"


def load(source: str) -> CompiledCondition:
    """Raises Problem for a condition that is invalid."""
    if len(source) > MAX_SOURCE:
        raise LimitProblem(f"the condition is longer than {MAX_SOURCE} characters")
    if len(source) > _MAX_CACHED_SOURCE:
        return CompiledCondition(source)
    return _load_cached(source)


_load_cached = lru_cache(maxsize=_CACHED_PROGRAMS)(CompiledCondition)


def _scan(source: str) -> frozenset[str]:
    """Returns the names that macros bind. Raises Problem for brackets that nest too deeply."""
    names, depth = set(), 0
    for token in _TOKEN.finditer(source):
        name = token["name"]
        depth += bool(name or token["open"]) - bool(token["close"])
        if name:
            names.add(name)
        if depth > _MAX_BRACKETS:
            raise LimitProblem("the condition is nested too deeply")
    return frozenset(names)


def _describe_parse_error(text: str) -> str:
    match = _PARSE_ERROR.search(text)
    if match is None:
        return "the condition is not valid"
    # The list of all tokens that would be valid helps nobody.
    message = match[3].split(" expecting {")[0].removeprefix("Syntax error: ")
    if "ecursion" in message:
        return "the condition is nested too deeply"
    return f"line {match[1]}, column {match[2]}: {message.replace('<EOF>', 'end')}"


def _describe(error: Exception) -> str:
    text = str(error)
    match error:
        case KeyError():
            return f"the key {text} does not exist; test it with has()"
        case IndexError():
            return f"an {text}" if text.startswith("index") else text
        case ZeroDivisionError():
            return "a division by zero"
        case _ if text.startswith("Undefined variable or function"):
            name = _QUOTED.search(text)
            return f"the name or function {name[1] if name else ''!r} is unknown"
        case TypeError():
            operation = text.split(". ", maxsplit=1)[0].split(": the operation", maxsplit=1)[0]
            return f"{operation}; convert values with int(x), double(x) or string(x)"
    return " ".join(text.split()).removesuffix(" Check function arguments and their types.")
