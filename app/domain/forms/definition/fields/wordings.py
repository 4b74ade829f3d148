"""The fixed texts of conversations with forms, by names. These are English; the files of
`languages` have the same texts in other languages.

{placeholders} are replaced by values. A text with variants has one for each plural category of its
`count`. Errors of the API use the same English texts: each is the end of a sentence about a field.
"""

from datetime import date
from typing import Any, Final

from app.kit.plurals import select_category
from app.kit.value_checks import WrongValue

from .language_tables import Text, get_language, get_table


def _plural(one: str, other: str) -> Text:
    return {"one": one, "other": other}


# What a conversation says, and how it asks for an answer.
_DIALOGUE: Final[dict[str, Text]] = {
    "greeting": "Hello! This is the form “{name}”.",
    "question": "{label}?",
    "request": "{label}:",
    "please_choose": "Please choose {answer}.",
    "please_enter": "Please enter {answer}.",
    "choose": "please choose {answer}.",
    "enter": "please enter {answer}.",
    "optional": "This is optional; say “skip” to leave it out.",
    "try_again": "Please try again.",
    "changed": "I changed “{label}” to {value}.",
    "noted": "I noted “{label}”: {value}.",
    "problem": "“{label}” {problem}.",
    "skip_refused": "“{label}” is required.",
    "yes": "yes",
    "no": "no",
    "signed": "signed",
    "received": "Thank you. Your answers have been received.",
    "list_separator": ", ",
    "list_or": "{words} or {last}",
    "list_more": _plural("{words} and {count} more", "{words} and {count} more"),
}
# What is expected, as the end of "Please enter …".
_EXPECTED: Final[dict[str, Text]] = {
    "a_text": "some text",
    "a_text_between": "text of {min} to {max} characters",
    "a_text_at_most": _plural(
        "text of at most {count} character", "text of at most {count} characters"
    ),
    "a_text_at_least": _plural(
        "text of at least {count} character", "text of at least {count} characters"
    ),
    "of_lines": "{text}, on one or more lines",
    "an_email": "an e-mail address, like name@example.com",
    "a_phone": "a phone number, like +44 20 7946 0958",
    "a_url": "a web address, like https://example.com",
    "a_hidden_value": "a text, a number, true or false",
    "a_number": "a number",
    "a_number_between": "a number from {min} to {max}",
    "a_number_at_least": "a number of at least {min}",
    "a_number_at_most": "a number of at most {max}",
    "in_steps": "{number}, in steps of {step}",
    "a_whole_number": "a whole number from 1 to {max}",
    "a_date": "a date, like 2026-01-31",
    "a_date_between": "a date from {min} to {max}, like 2026-01-31",
    "a_date_from": "a date from {min} on, like 2026-01-31",
    "a_date_until": "a date until {max}, like 2026-01-31",
    "a_time": "a date and a time, like 2026-01-31 09:30",
    "a_time_between": "a date and a time from {min} to {max}, like 2026-01-31 09:30",
    "a_time_from": "a date and a time from {min} on, like 2026-01-31 09:30",
    "a_time_until": "a date and a time until {max}, like 2026-01-31 09:30",
    "the_options": "the options",
    "one_of": "one of {options}",
    "some_of": "one or more of {options}",
    "at_least_of": _plural("at least {count} of {options}", "at least {count} of {options}"),
    "exactly_of": _plural("one of {options}", "{count} of {options}"),
    "between_of": "{min} to {max} of {options}",
    "a_confirmation": "yes to confirm",
    "yes_or_no": "yes or no",
    "a_file": "a file of at most {megabytes} MB",
    "a_file_of": "a file of at most {megabytes} MB ({kinds})",
    "your_signature": "your signature",
    "nothing": "nothing",
}
# What is wrong with an answer, as the end of a sentence about its field.
_PROBLEMS: Final[dict[str, Text]] = {
    "required": "is required",
    "empty": "must not be empty",
    "long_message": _plural(
        "must be an answer of at most {count} character",
        "must be an answer of at most {count} characters",
    ),
    "no_answer": "takes no answer",
    "too_slow": "takes too long to check; make the answers shorter",
    "nul": "must not contain NUL characters",
    "one_line": "must be one line, without control characters",
    "max_length": _plural(
        "must have at most {count} character", "must have at most {count} characters"
    ),
    "min_length": _plural(
        "must have at least {count} character", "must have at least {count} characters"
    ),
    "pattern": "must have the required format",
    "email": "must be an e-mail address, like name@example.com",
    "phone": "must be a phone number, like +44 20 7946 0958",
    "phone_alone": "must be a phone number, like +44 20 7946 0958, without other numbers",
    "url": "must be a web address, like https://example.com",
    "storable": "must be from -{limit} to {limit}",
    "min": "must be at least {min}",
    "max": "must be at most {max}",
    "step": "must be in steps of {step}",
    "step_from": "must be in steps of {step} from {min}",
    "stars": "must be a whole number from 1 to {max}",
    "one_number": "must be one number in digits, like 3.5",
    "score": "must be a score out of {max}",
    "min_date": "must not be before {date}",
    "max_date": "must not be after {date}",
    "one_date": "must be one date, like 2026-01-31 or 31 January 2026",
    "one_time": "must be one date and one time of day, like 2026-01-31 09:30",
    "zone": "must be a time in UTC, or with its UTC offset, like 2026-01-31 09:30 +02:00",
    "option": "must be one of the options: {options}",
    "option_list": "must be a list of options",
    "option_count": _plural(
        "must have at most {count} option", "must have at most {count} options"
    ),
    "option_once": "must not repeat an option",
    "min_selections": _plural(
        "must have at least {count} of the options", "must have at least {count} of the options"
    ),
    "max_selections": _plural(
        "must have at most {count} of the options", "must have at most {count} of the options"
    ),
    "checked": "must be checked",
    "consent": "must be yes or no",
    "missing_file": (
        "needs a file that was uploaded for this field within the last day; upload it again"
    ),
    "unknown_option": "must be one of the options",
    "file_id": "must be the id of an uploaded file, like fil_…",
    "image_prefix": "must be a PNG image that begins with {prefix}",
    "image_coding": "must be a PNG image in base64",
    "image": "must be a PNG image",
}
# What the page of a form says without its script.
_PAGE: Final[dict[str, Text]] = {
    "needs_javascript": "This form needs JavaScript.",
    "page_missing": "This form is not available",
    "page_missing_why": "The address may be mistyped, or the form is no longer published.",
    "page_closed": "This form is closed",
    "page_closed_why": "It takes no more answers.",
    "page_limited": "Too many requests",
    "page_limited_why": "Please try again in a moment.",
}
WORDINGS: Final = _DIALOGUE | _EXPECTED | _PROBLEMS | _PAGE
# Answers that leave a question out.
SKIP: Final = frozenset(
    {"skip", "skip it", "skip this", "skip that", "pass", "next", "leave it empty", "rather not"}
    | {"no thanks", "no thank you", "i'd rather not", "i'd rather not say", "prefer not to say"}
)
# Answers that say that there is nothing; where a text is required, they may be the answer.
NOTHING: Final = frozenset(
    {"none", "n/a", "na", "nothing", "not applicable", "none of them", "none of these"}
)


def say(name: str, /, **values: Any) -> str:
    """Returns a text in the language of the conversation. A `count` is written with the separators
    of the language.
    """
    table = get_table()
    text = WORDINGS[name] if table is None else table.texts.get(name, WORDINGS[name])
    if not isinstance(text, str):
        text = text.get(select_category(get_language(), values["count"]), text["other"])
    if "count" in values:
        values["count"] = group_digits(values["count"])
    return text.format(**values)


def refuse(name: str, /, **values: Any) -> WrongValue:
    """Returns what refuses a value."""
    return WrongValue(say(name, **values))


def group_digits(number: int) -> str:
    """Returns a whole number with the separators of the language."""
    table = get_table()
    return f"{number:,}" if table is None else f"{number:,}".replace(",", table.numbers.groups[0])


def show_decimal(text: str) -> str:
    """Returns a number, written with a point, as the language writes it."""
    table = get_table()
    return text if table is None else text.replace(".", table.numbers.decimal)


def show_date(text: str) -> str:
    """Returns a stored date, or the date of a stored time, as the language writes it."""
    table = get_table()
    if table is None:
        return text
    try:
        day = date.fromisoformat(text[:10])
    except ValueError:
        return text
    shown = table.dates.shown.format(day=day.day, month=day.month, year=day.year)
    return shown + text[10:].replace("T", " ").removesuffix("Z")
