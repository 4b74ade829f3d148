"""Templates that tenants write, over untrusted data: a small part of Jinja's language, without
calls, loops and arithmetic. Data are plain JSON; `a.b` and `a['b']` are the key `b` of an object,
never an attribute. A missing key is null: it renders as "", the filter `default` replaces it.
"""

from collections.abc import Collection, Iterator, Mapping
from functools import lru_cache
from typing import Any

from app.kit.texts import storable
from app.templating.template_expressions import Template, TemplateProblem
from app.templating.template_filters import CostExceeded, Run

__all__ = ["MAX_SOURCE", "TemplateProblem", "check", "evaluate", "render"]

MAX_SOURCE = 20_000
# With the limit on tokens, such a template takes at most 400 KiB: the cache takes at most 25 MiB.
_MAX_CACHED_SOURCE = 10_000
_CACHED_TEMPLATES = 64


def check(source: str, names: Collection[str]) -> None:
    """Raises TemplateProblem for a template that is invalid or uses other names than these."""
    _load(source, names)


def render(
    source: str, values: Mapping[str, Any], *, max_chars: int, run: Run | None = None
) -> str:
    """Returns a text that Postgres can store, cut at `max_chars`, or where the operations exceed
    their budget, which is that of `run` where several templates share one. Raises TemplateProblem
    only for a template that `check` refuses.
    """
    return _render(_load(source, values), run or Run(values), max_chars)


def evaluate(
    source: str, values: Mapping[str, Any], *, max_chars: int, run: Run | None = None
) -> Any:
    """Returns the value of a template that is one {{ expression }}, without a copy, or None when it
    exceeds the budget; renders any other template. A text is cut at `max_chars`.
    """
    template, run = _load(source, values), run or Run(values)
    if template.expression is None:
        return _render(template, run, max_chars)
    try:
        value = template.expression.value(run)
    except CostExceeded:
        return None
    return storable(value[:max_chars]) if isinstance(value, str) else value


def _render(template: Template, run: Run, max_chars: int) -> str:
    texts, length = [], 0
    for text in _texts(template, run):
        texts.append(text[: max_chars - length])
        length += len(texts[-1])
        if length >= max_chars:
            break
    return storable("".join(texts))


def _texts(template: Template, run: Run) -> Iterator[str]:
    try:
        for part in template.parts:
            yield from part.texts(run)
    except CostExceeded:
        return


def _load(source: str, names: Collection[str]) -> Template:
    if len(source) > MAX_SOURCE:
        raise TemplateProblem(f"the template is longer than {MAX_SOURCE} characters")
    if len(source) > _MAX_CACHED_SOURCE:
        return _parse(source, frozenset(names))
    return _parse_cached(source, frozenset(names))


def _parse(source: str, names: frozenset[str]) -> Template:
    # Jinja takes 70 ms to import: only processes that use templates load it.
    from app.templating.template_parser import parse  # noqa: PLC0415

    return parse(source, names)


@lru_cache(maxsize=_CACHED_TEMPLATES)
def _parse_cached(source: str, names: frozenset[str]) -> Template:
    return _parse(source, names)
