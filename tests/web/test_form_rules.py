"""The page's rules agree with the server's: both decide about the same tables."""

import math
import random
from itertools import product
from typing import Any, get_args

import msgspec
import pytest

from app.domain.forms.definition import conditions
from app.domain.forms.definition.definitions import FormDefinition
from app.domain.forms.definition.fields.definition import Conditional, Operator
from app.domain.forms.definition.fields.links import to_plain_text
from app.domain.forms.definition.fields.protocol import InputField
from app.domain.forms.submissions.answers import check_answers
from app.domain.forms.submissions.public_schemas import build_field as to_public
from app.kit.value_checks import WrongValue
from tests.forms.definition.field_builders import build_field, build_form
from tests.forms.definition.fields.registry import BAD, GOOD
from tests.forms.definition.fields.samples import OPTIONS
from tests.forms.definition.links import LINKS, TEXTS
from tests.web.module_runner import ModuleRunner

# What is wrong, without the label.
_END = "const end = (problem) => problem.splitAtLabel()[1].replace('” ', '');"
_CHECK = f"""({{ check }}, cases) => {{ {_END} return cases.map(([field, value]) => {{
    const {{ value: stored, problem }} = check(field, value);
    return problem ? {{ problem: end(problem) }} : {{ value: stored }};
}}); }}"""
_IS_MET = """({ isMet }, cases) => cases.map(([conditional, answer]) =>
    isMet(conditional, new Map(answer === null ? [] : [["a", answer]])))"""
_EVALUATE = f"""({{ evaluate }}, [fields, answers]) => {{ {_END} return answers.map((data) => {{
    const {{ values, problems, visible }} = evaluate(fields, data);
    const ends = [...problems].map(([id, problem]) => [id, end(problem)]);
    return [Object.fromEntries(values), Object.fromEntries(ends), [...visible].sort()];
}}); }}"""
# Refused by the server alone: a browser matches no pattern with a text of this length.
_LEFT_TO_SERVER = "A" * 1000


def _to_json(field: InputField[Any]) -> Any:
    return msgspec.to_builtins(to_public(field.definition))


def _is_plain(value: Any) -> bool:
    """True for numbers that JSON and JavaScript have, and for lists that are sent in no time."""
    if isinstance(value, list):
        return len(value) < 1000
    return not isinstance(value, float | int) or (abs(value) < 10**300 and math.isfinite(value))


def _list_values() -> list[tuple[InputField[Any], Any]]:
    cases = []
    for kind, rules, pairs in GOOD:
        field = build_field(kind, rules)
        cases += [(field, value) for value, _ in pairs]
    for kind, rules, messages in BAD:
        field = build_field(kind, rules)
        cases += [(field, value) for values in messages.values() for value in values]
    return [(field, value) for field, value in cases if field.type.has_value and _is_plain(value)]


def _decide(field: InputField[Any], value: Any) -> dict[str, Any]:
    try:
        return {"value": field.type.check(field, value)}
    except WrongValue as error:
        return {"problem": str(error)}


def test_values_are_checked_alike(modules: ModuleRunner, subtests: pytest.Subtests) -> None:
    cases = _list_values()
    arguments = [[_to_json(field), value] for field, value in cases]
    decisions = modules.evaluate("form/checks.js", _CHECK, arguments)
    assert len(decisions) == len(cases) > 200
    for (field, value), decision in zip(cases, decisions, strict=True):
        with subtests.test(field.type.name, value=repr(value)[:80]):
            if value == _LEFT_TO_SERVER:
                assert decision == {"value": value}
            else:
                assert decision == _decide(field, value)


_POOL: list[Any] = [
    None, True, False, 0, 1, 2.5, -1, "", "a", "A", "ab", "1", "Lange Straße 1", "STRASSE",
    "Σίσυφος", "ΣΊΣΥΦΟΣ", "2026-01-31", "2026-02-01T09:30:00Z", "\U0001f30d", "\uffee",
    [], ["a"], ["b", "a"], ["a", "b"], ["A"],
]  # fmt: skip


def _list_conditions() -> list[tuple[Conditional, Any]]:
    """Every operator with every operand that a form can have, and every answer."""
    cases = []
    for operator, operand, answer in product(get_args(Operator), _POOL, _POOL):
        is_wrong = (operator == "contains" and not isinstance(operand, str)) or operand is None
        if is_wrong or (operator == "in" and not isinstance(operand, list)):
            continue
        cases.append((Conditional(field="a", operator=operator, value=operand), answer))
    return cases


def test_conditionals_are_decided_alike(modules: ModuleRunner) -> None:
    cases = _list_conditions()
    arguments = [[msgspec.to_builtins(item), answer] for item, answer in cases]
    decisions = modules.evaluate("form/conditions.js", _IS_MET, arguments)
    assert len(decisions) == len(cases) > 3000
    wrong = [
        (item, answer, decision)
        for (item, answer), decision in zip(cases, decisions, strict=True)
        if conditions.is_met(item, {} if answer is None else {"a": answer}) is not decision
    ]
    assert wrong == []


def test_links_are_found_alike(modules: ModuleRunner) -> None:
    texts = [*LINKS, *TEXTS]
    function = "({ toPlainText }, texts) => texts.map(toPlainText)"
    assert modules.evaluate("form/links.js", function, texts) == [*LINKS.values(), *TEXTS]
    function = "({ splitLinks }, texts) => texts.map(splitLinks)"
    parts = modules.evaluate("form/links.js", function, texts)
    for text, found in zip(texts, parts, strict=True):
        assert "".join(part["text"] for part in found) == to_plain_text(text)
        urls = [part["url"] for part in found if "url" in part]
        assert bool(urls) == (text in LINKS)
        assert all(url.startswith(("http://", "https://", "mailto:")) for url in urls)


def _show_if(field: str, operator: str, value: Any = None) -> dict[str, Any]:
    return {"conditional": {"field": field, "operator": operator, "value": value}}


# Conditionals on each other, not in the order of the fields.
_FIELDS: list[dict[str, Any]] = [
    {"id": "reason", "type": "text", "required": True, **_show_if("budget", "gt", 10)},
    {"id": "head", "type": "section", **_show_if("reason", "contains", "x")},
    {
        "id": "budget", "type": "number", "validation": {"max": 99},
        **_show_if("topic", "in", ["sales", "rd"]),
    },
    {"id": "topic", "type": "select", "options": OPTIONS},
    {"id": "agree", "type": "checkbox", "required": True, **_show_if("tags", "is_not_empty")},
    {"id": "tags", "type": "checkbox_group", "options": OPTIONS},
    {"id": "mail", "type": "email", "required": True, **_show_if("agree", "equals", value=False)},
    {"id": "when", "type": "date", **_show_if("mail", "is_empty")},
    {"id": "later", "type": "text", "required": True, **_show_if("when", "lt", "2026-06-01")},
]  # fmt: skip
_FIELDS += [
    {
        "id": "both", "type": "text", "required": True,
        "conditional": {"all": [
            {"field": "topic", "operator": "equals", "value": "sales"},
            {"any": [
                {"field": "budget", "operator": "lt", "value": 10},
                {"all": [
                    {"field": "tags", "operator": "contains", "value": "rd"},
                    {"field": "late", "operator": "is_empty"},
                ]},
            ]},
        ]},
    },
    {
        "id": "late", "type": "text",
        "conditional": {"any": [
            {"field": "mail", "operator": "is_not_empty"},
            {"field": "reason", "operator": "equals", "value": "x"},
        ]},
    },
]  # fmt: skip
_ANSWERS: dict[str, list[Any]] = {
    "reason": [None, " ", "x", "a\nb"],
    "budget": [None, 5, 50, 500],
    "topic": [None, "sales", "rd", "tech", "other"],
    "agree": [None, True, False],
    "tags": [None, [], ["rd"]],
    "mail": [None, "ada", "ada@example.com"],
    "when": [None, "2026-01-01", "2026-12-01", "soon"],
    "later": [None, "x"],
    "both": [None, "x"],
    "late": [None, "x"],
}


def _decide_all(form: FormDefinition, data: dict[str, Any]) -> list[Any]:
    checked = check_answers(form, data)
    return [checked.values, dict(checked.problems), sorted(checked.visible)]


def test_whole_forms_are_checked_alike(modules: ModuleRunner) -> None:
    form = build_form(*_FIELDS)
    chance = random.Random(7)
    answers = [
        {key: chance.choice(values) for key, values in _ANSWERS.items()} for _ in range(2000)
    ]
    fields = [_to_json(field) for field in form.fields]
    decisions = modules.evaluate("form/answers.js", _EVALUATE, [fields, answers])
    for data, decision in zip(answers, decisions, strict=True):
        assert decision == _decide_all(form, data), data
