"""Templates in Jinja's language over plain JSON. `a.b` and `a['b']` are the key `b` of an object,
never an attribute; texts have no methods. A missing key is null.
"""

import re
from collections.abc import Collection, Mapping
from functools import lru_cache
from types import TracebackType
from typing import Any

from jinja2 import Template, TemplateSyntaxError, Undefined, meta, nodes
from jinja2.exceptions import SecurityError, TemplateError
from jinja2.runtime import Context, LoopContext
from jinja2.sandbox import ImmutableSandboxedEnvironment

from app.templating.evaluation import arithmetic
from app.templating.evaluation.filters import FILTERS, TESTS, bounded_range
from app.templating.evaluation.problems import LimitProblem, Problem
from app.templating.evaluation.template_nodes import (
    Rewriter,
    TemplateTooComplex,
    TokenLimits,
    check_nodes,
)
from app.templating.evaluation.values import look_up, to_text

MAX_SOURCE = 20_000
# Such a template takes at most 100 KiB: the cache takes at most 25 MiB.
_MAX_CACHED_SOURCE = 4_000
_CACHED_TEMPLATES = 256
_MAX_OUTPUT = 1024 * 1024
_RESULT = "parley_result"
_BUILT_IN_NAMES = {"range"}
_LOOP_ATTRIBUTES = {
    *("index", "index0", "revindex", "revindex0", "first", "last", "length", "previtem"),
    *("nextitem", "depth", "depth0", "cycle", "changed"),
}
_PYTHON_TYPES = {
    "'NoneType' object": "null",
    "'NoneType'": "null",
    "'dict' object": "an object",
    "'dict'": "an object",
    "'list' object": "a list",
    "'list'": "a list",
    "'str' object": "a text",
    "'str'": "a text",
    "'int'": "a number",
    "'float'": "a number",
    "'bool'": "a boolean",
}
_PYTHON_TYPE = re.compile("|".join(map(re.escape, _PYTHON_TYPES)))


class _Null(Undefined):
    """Makes null of what Jinja would call undefined."""

    def __new__(cls, *_: Any, **__: Any) -> Any:
        return None


class _Environment(ImmutableSandboxedEnvironment):
    intercepted_binops = frozenset({"+", "-", "*", "/", "//", "%", "**"})
    intercepted_unops = frozenset({"-", "+"})

    def getattr(self, obj: Any, attribute: str) -> Any:
        if isinstance(obj, LoopContext):
            return getattr(obj, attribute) if attribute in _LOOP_ATTRIBUTES else None
        return look_up(obj, attribute)

    def getitem(self, obj: Any, argument: Any) -> Any:
        is_key = isinstance(argument, str | int) and not isinstance(argument, bool)
        return look_up(obj, argument) if is_key else None

    def is_safe_callable(self, obj: Any) -> bool:
        is_loop_method = isinstance(getattr(obj, "__self__", None), LoopContext)
        return obj is bounded_range or is_loop_method

    def call_binop(self, _: Context, operator: str, left: Any, right: Any) -> Any:
        return arithmetic.binary(operator, left, right)

    def call_unop(self, _: Context, operator: str, arg: Any) -> Any:
        return arithmetic.unary(operator, arg)


def _create_environment() -> _Environment:
    environment = _Environment(
        undefined=_Null,
        finalize=to_text,
        keep_trailing_newline=True,
        optimized=False,
        extensions=[TokenLimits],
        cache_size=0,
    )
    environment.filters = dict(FILTERS)
    environment.tests = dict(TESTS)
    environment.globals = {"range": bounded_range}
    return environment


_environment = _create_environment()


class CompiledTemplate:
    """`lines` has the names of the values that the template uses, and where. One that is a single
    {{ expression }} has the type of its value.
    """

    __slots__ = ("_is_expression", "_lines", "_template")

    def __init__(self, template: Template, lines: dict[str, int], *, is_expression: bool) -> None:
        self._template = template
        self._is_expression = is_expression
        self._lines = lines

    def check_names(self, known: Collection[str]) -> None:
        """Raises Problem when a name is not known."""
        check_names(self._lines, known, self._lines)

    def render(self, values: Mapping[str, Any], max_chars: int | None = None) -> Any:
        """Ends, instead of failing, once the text is longer than `max_chars`."""
        self.check_names(values)
        try:
            return self._render(values, max_chars)
        except (Problem, MemoryError, RecursionError):
            raise
        except SecurityError:
            raise Problem("calls are not allowed") from None
        except Exception as error:  # noqa: BLE001  # any error of Jinja or Python is the author's
            line = self._find_line(error.__traceback__)
            raise Problem(f"line {line}: {_describe(error)}") from None

    def _render(self, values: Mapping[str, Any], max_chars: int | None) -> Any:
        context = self._template.new_context({name: values[name] for name in self._lines})
        texts, length = [], 0
        for text in self._template.root_render_func(context):
            texts.append(text)
            length += len(text)
            if max_chars is not None and length > max_chars:
                break
            if length > _MAX_OUTPUT:
                raise LimitProblem("the result is larger than 1 MiB")
        return context.vars[_RESULT] if self._is_expression else "".join(texts)

    def _find_line(self, traceback: TracebackType | None) -> int:
        line = 1
        while traceback:
            if traceback.tb_frame.f_code.co_filename == "<template>":
                line = self._template.get_corresponding_lineno(traceback.tb_lineno)
            traceback = traceback.tb_next
        return line


def _describe(error: Exception) -> str:
    text = _PYTHON_TYPE.sub(lambda match: _PYTHON_TYPES[match[0]], str(error))
    if isinstance(error, TemplateError | TypeError | ValueError) and " at 0x" not in text:
        return text
    return "the expression cannot be evaluated"


def check_names(
    used: Collection[str], known: Collection[str], lines: Mapping[str, int] | None = None
) -> None:
    """Raises Problem when a name is not known."""
    for name in sorted(used):
        if name not in known:
            where = f"line {lines[name]}: " if lines else ""
            names = ", ".join(sorted(known)) or "none"
            raise Problem(f"{where}the name {name[:50]!r} is unknown; known names: {names}")


def load(source: str) -> CompiledTemplate:
    """Raises Problem for a template that is invalid."""
    if len(source) > MAX_SOURCE:
        raise LimitProblem(f"the template is longer than {MAX_SOURCE} characters")
    return _load_cached(source) if len(source) <= _MAX_CACHED_SOURCE else _load(source)


def _load(source: str) -> CompiledTemplate:
    try:
        return _compile(source)
    except TemplateSyntaxError as error:
        message = error.message or "the syntax is invalid"
        kind = LimitProblem if isinstance(error, TemplateTooComplex) else Problem
        raise kind(f"line {error.lineno}: {message}") from None
    except (RecursionError, SyntaxError):
        raise LimitProblem("the template is nested too deeply") from None


_load_cached = lru_cache(maxsize=_CACHED_TEMPLATES)(_load)


def _find_names(tree: nodes.Template) -> dict[str, int]:
    """Returns the names that the template does not set itself, and the first line of each."""
    generator = meta.TrackingCodeGenerator(_environment)
    # It would evaluate constants, in a time that grows with the square of a chain of filters.
    generator.optimizer = None
    generator.visit(tree)
    names = generator.undeclared_identifiers - _BUILT_IN_NAMES
    lines: dict[str, int] = {}
    for node in tree.find_all(nodes.Name):
        if node.name in names:
            lines[node.name] = min(node.lineno, lines.get(node.name, node.lineno))
    return lines


def _compile(source: str) -> CompiledTemplate:
    tree = _environment.parse(source)
    check_nodes(tree)
    Rewriter().visit(tree)
    tree.set_environment(_environment)
    lines = _find_names(tree)
    is_expression = False
    match tree.body:
        case [nodes.Output(nodes=[expression])] if not isinstance(expression, nodes.TemplateData):
            target = nodes.Name(_RESULT, "store", lineno=1)
            tree = nodes.Template([nodes.Assign(target, expression, lineno=1)], lineno=1)
            tree.set_environment(_environment)
            is_expression = True
    return CompiledTemplate(_environment.from_string(tree), lines, is_expression=is_expression)
