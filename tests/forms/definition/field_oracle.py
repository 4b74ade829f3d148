"""A second opinion on conditionals of generated forms, without the code that it checks."""

from typing import Any

Json = dict[str, Any]


def is_shown(fields: dict[str, Json], field_id: str, values: Json) -> bool:
    """True when the field is shown, given the stored values."""
    conditional = fields[field_id].get("conditional")
    return conditional is None or _holds(fields, conditional, values)


def _holds(fields: dict[str, Json], conditional: Json, values: Json) -> bool:
    for name, decide in (("all", all), ("any", any)):
        if name in conditional:
            return decide(_holds(fields, part, values) for part in conditional[name])
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
