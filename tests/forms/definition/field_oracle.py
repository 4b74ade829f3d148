"""A second opinion on stored values and conditionals, for generated forms. It is written without
the code that it checks.
"""

import re
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal, localcontext
from typing import Any

Json = dict[str, Any]

_LINE = re.compile(r"[^\x00-\x1f\x7f-\x9f\u2028\u2029]*")


def _is_in_range(field: Json, value: Any) -> bool:
    defaults = {"min": 0, "max": 100, "step": 1} if field["type"] == "slider" else {}
    rules = {**defaults, **field["validation"]}
    if type(value) not in {int, float} or abs(value) >= 2**53:
        return False
    if value < rules.get("min", value) or value > rules.get("max", value):
        return False
    with localcontext() as context:
        context.prec = 1000
        distance = Decimal(str(value)) - Decimal(str(rules.get("min", 0)))
        return "step" not in rules or distance % Decimal(str(rules["step"])) == 0


def _has_length(field: Json, value: Any, default: int) -> bool:
    rules = field["validation"]
    shortest, longest = rules.get("min_length", 0), rules.get("max_length", default)
    return isinstance(value, str) and shortest <= len(value) <= longest


def _is_text(field: Json, value: Any) -> bool:
    pattern = field["validation"].get("pattern", ".*")
    is_line = _has_length(field, value, 1000) and _LINE.fullmatch(value) is not None
    return is_line and re.fullmatch(pattern, value) is not None


def _is_phone(field: Json, value: Any) -> bool:
    pattern = field["validation"].get("pattern", ".*")
    is_number = re.fullmatch(r"\+?[0-9()\-./ \xa0]{5,40}", value) and re.fullmatch(pattern, value)
    return bool(is_number) and 5 <= len(re.findall("[0-9]", value)) <= 20


def _is_choice(field: Json, value: Any) -> bool:
    return value in [option["value"] for option in field["options"]]


def _are_choices(field: Json, value: Any) -> bool:
    fewest = field["validation"].get("min_selections", 0)
    most = field["validation"].get("max_selections", 500)
    return (
        isinstance(value, list)
        and max(1, fewest) <= len(value) <= most
        and len(value) == len(set(value))
        and all(_is_choice(field, item) for item in value)
    )


def _is_date(field: Json, value: Any) -> bool:
    rules = field["validation"]
    is_date = re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", value) and date.fromisoformat(value)
    return bool(is_date) and rules.get("min_date", "") <= value <= rules.get("max_date", "9")


def _is_time(field: Json, value: Any) -> bool:
    rules = field["validation"]
    moment = datetime.strptime(value, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
    first, last = rules.get("min_date", "0001-01-01"), rules.get("max_date", "9999-12-31")
    # A date as the last one has all of its times.
    return first <= value and (value <= last or value[:10] == last) and moment.year >= 1


def _is_web_address(field: Json, value: Any) -> bool:
    return bool(re.fullmatch(r"https?://[^\s<>\"@/?#]+([/?#][^\s<>\"]*)?", value, re.IGNORECASE))


RULES: dict[str, Callable[[Json, Any], bool]] = {
    "text": _is_text,
    "textarea": lambda field, value: _has_length(field, value, 10_000),
    "email": lambda _, value: bool(re.fullmatch(r"[!-~]{1,64}@[^\s@]{1,253}", value)),
    "phone": _is_phone,
    "number": _is_in_range,
    "slider": _is_in_range,
    "rating": lambda field, value: (
        type(value) is int and 1 <= value <= field["validation"].get("max", 5)
    ),
    "select": _is_choice,
    "radio": _is_choice,
    "multi_select": _are_choices,
    "checkbox_group": _are_choices,
    "checkbox": lambda field, value: value is True or (value is False and not field["required"]),
    "date": _is_date,
    "datetime": _is_time,
    "file": lambda _, value: bool(re.fullmatch("fil_[A-Za-z0-9]{1,60}", value)),
    "url": _is_web_address,
    "signature": lambda _, value: value.startswith("data:image/png;base64,iVBORw0KGgo"),
    "hidden": lambda _, value: type(value) in {str, int, float, bool},
}


def is_shown(fields: dict[str, Json], field_id: str, values: Json) -> bool:
    """True when the field is shown, given the stored values."""
    conditional = fields[field_id].get("conditional")
    if conditional is None:
        return True
    other = conditional["field"]
    answer = values.get(other) if is_shown(fields, other, values) else None
    return _is_met(conditional["operator"], answer, conditional.get("value"))


def _is_met(operator: str, answer: Any, operand: Any) -> bool:
    if operator.startswith("not_") or operator == "is_not_empty":
        return not _is_met(operator.replace("not_", ""), answer, operand)
    if operator == "is_empty":
        return answer in (None, [], "") or answer is False
    if operator == "in":
        answers = answer if isinstance(answer, list) else [answer]
        return any(_is_met("equals", item, other) for item in answers for other in operand)
    if operator == "equals":
        if type(operand) is bool and answer is None:
            return not operand
        if isinstance(answer, list):
            return sorted(answer) == sorted(operand if isinstance(operand, list) else [operand])
        return (type(answer) is bool) == (type(operand) is bool) and bool(answer == operand)
    if operator == "contains":
        is_inside = isinstance(answer, list) and operand in answer
        return is_inside or (isinstance(answer, str) and operand.casefold() in answer.casefold())
    kinds = {
        bool if type(item) is bool else str if isinstance(item, str) else float
        for item in (answer, operand)
    }
    if answer is None or len(kinds) > 1 or bool in kinds:
        return False
    return bool(answer > operand if operator == "gt" else answer < operand)
