"""What the form says in a conversation: its questions, and what it understood."""

from collections.abc import Mapping, Sequence
from typing import Any

from app.domain.forms.definition.api import (
    FormDefinition,
    InputField,
    LiveForm,
    links,
    say,
    wordings,
)

_MAX_SHOWN_CHARS = 200
_COLONS = (":", "\uff1a")
_ENDS = ("?", ".", "!", *_COLONS, "\uff1f", "\u061f", "\u3002", "\uff01")


def greet(form: LiveForm, first: InputField[Any], texts: Sequence[InputField[Any]] = ()) -> str:
    greeting = form.settings.conversation.greeting or say("greeting", name=form.name)
    about = form.description.strip()
    return _join_blocks([join([greeting, about]), *map(_read_out, texts), ask(first)], texts)


def _read_out(field: InputField[Any]) -> str:
    """Returns a text of the form that is not a question."""
    definition = field.definition
    lines = (definition.label.strip(), definition.help_text.strip())
    return "\n".join(line for line in lines if line)


def _join_blocks(parts: Sequence[str], texts: Sequence[InputField[Any]]) -> str:
    """Texts of the form stand apart from what is said around them."""
    return "\n\n".join(part for part in parts if part) if texts else join(parts)


def ask(field: InputField[Any]) -> str:
    """Returns the question for a field."""
    definition = field.definition
    label = definition.label.strip()
    is_complete = label.endswith(_ENDS)
    is_plain = field.type.is_free_text and not definition.validation
    question = label if is_complete else say("question" if is_plain else "request", label=label)
    parts = [question, _explain_answer(field, question), definition.help_text.strip()]
    return join([*parts, _offer_skip(field)])


def _explain_answer(field: InputField[Any], question: str) -> str:
    """A plain text needs no explanation."""
    if field.type.is_free_text and not field.definition.validation:
        return ""
    verb = "choose" if field.type.has_options else "enter"
    name = verb if question.endswith(_COLONS) else f"please_{verb}"
    return say(name, answer=field.type.describe(field))


def _offer_skip(field: InputField[Any]) -> str:
    return "" if field.definition.required else say("optional")


def go_on(
    form: FormDefinition,
    field: InputField[Any],
    texts: Sequence[InputField[Any]],
    reply: str,
    problems: Mapping[str, str],
) -> str:
    """Says what is wrong and asks for the field, which may be one of the wrong ones. `texts` come
    before the question.
    """
    said = join([reply, explain(form, problems)])
    if field.id in problems:
        return join([said, say("try_again"), _offer_skip(field)])
    return _join_blocks([said, *map(_read_out, texts), ask(field)], texts)


def acknowledge(
    form: FormDefinition, before: Mapping[str, Any], values: Mapping[str, Any], current_id: str
) -> str:
    """Repeats what was understood, unless it is just the answer to the question."""
    parts = []
    for field_id, value in values.items():
        field = form.by_id[field_id]
        if field_id in before and before[field_id] != value:
            parts.append(say("changed", label=field.label, value=_show(field, value)))
        elif field_id not in before and field_id != current_id:
            parts.append(say("noted", label=field.label, value=_show(field, value)))
    return " ".join(parts)


def _show(field: InputField[Any], value: Any) -> str:
    text = links.disarm(field.type.format(field, value))
    return text if len(text) <= _MAX_SHOWN_CHARS else f"{text[:_MAX_SHOWN_CHARS]}…"


def explain(form: FormDefinition, problems: Mapping[str, str]) -> str:
    """Says what is wrong with answers."""
    sentences = [
        say("problem", label=form.by_id[field_id].label, problem=message)
        for field_id, message in problems.items()
        if field_id in form.by_id
    ]
    return " ".join(sentences)


def refuse_skip(field: InputField[Any]) -> str:
    return say("skip_refused", label=field.label)


def thank(form: LiveForm) -> str:
    """Returns the success message; the one of forms that have none is translated."""
    message = form.settings.success_message
    return say("received") if message == wordings.WORDINGS["received"] else message


def join(parts: Sequence[str]) -> str:
    return " ".join(part for part in parts if part)
