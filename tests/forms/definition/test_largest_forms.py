"""The largest forms that can be defined, with the longest messages: no step takes long."""

import itertools
import string
import time
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest

from app.domain.forms.conversation import interpreting, mentions
from app.domain.forms.conversation.interpreting import Question
from app.domain.forms.definition.definitions import FormDefinition
from app.domain.forms.definition.fields import patterns
from app.domain.forms.definition.fields.language_tables import speak
from app.domain.forms.definition.fields.options import Option
from app.domain.forms.submissions import answers
from tests.assertions import refused
from tests.data.tables.api import add_rows, create_table
from tests.forms.api import PATH, create_form, problems, send
from tests.forms.conversation.chat import start
from tests.forms.definition.field_builders import build_form, decode_fields
from tests.forms.definition.fields.samples import TABLE
from tests.loop_watch import watch_loop
from tests.platform.events.query_plans import record_statements
from tests.world import Client

_MAX_SECONDS = 0.1
_MAX_CHARS = 4000
# Each character makes the engine build a new state.
_SLOW_PATTERN = "[ab]*a[ab]{300}"
_SLOW_TEXT = ("ab" * 3 + "aab" * 5) * 480


def _measure(function: Callable[..., object], *args: Any) -> float:
    """Returns the processor time of the fastest call. Other processes of a busy machine slow some
    of them down, so a slow one is tried again.
    """
    fastest = float("inf")
    for _ in range(10):
        start_time = time.thread_time()
        function(*args)
        fastest = min(fastest, time.thread_time() - start_time)
        if fastest < _MAX_SECONDS:
            break
    return fastest


def _read(form: FormDefinition, text: str) -> interpreting.Reading:
    question = Question(fields=form.inputs, answers={}, current=form.inputs[0])
    return interpreting.read(question, text)


def _words() -> Iterator[str]:
    return ("".join(letters) for letters in itertools.product(string.ascii_lowercase, repeat=4))


def _build_texts(labels: list[str]) -> FormDefinition:
    return build_form(*({"type": "text", "label": label} for label in labels))


def test_names_of_fields_are_found_in_time(subtests: pytest.Subtests) -> None:
    words = _words()
    cases = {
        "many words": (
            _build_texts([" ".join(itertools.islice(words, 398)) for _ in range(118)]),
            "a " * 1999,
        ),
        "one word": (_build_texts([f"{'a ' * (900 - n)}b" for n in range(118)]), "a " * 1999),
        "genitives": (_build_texts(["s's" * 600, "s"]), "s's" * 1300),
        "no changes": (_build_texts([f"n{n}" for n in range(200)]), "n1 to " * 660),
        "all names": (
            _build_texts([f"n{n}" for n in range(200)]),
            " ".join(f"n{n}: x" for n in range(200)),
        ),
    }
    for name, (form, text) in cases.items():
        with subtests.test(name):
            assert len(text) <= _MAX_CHARS
            mentions.split(form.inputs, "x")
            assert _measure(_read, form, text) < _MAX_SECONDS
            assert _measure(mentions.find_named, form.inputs, text) < _MAX_SECONDS


def test_words_of_questions_are_found_in_time(subtests: pytest.Subtests) -> None:
    form = build_form({"type": "text", "label": "Name"})
    for language, word in {"ja": "何", "zh": "吗"}.items():
        with subtests.test(language), speak(language):  # type: ignore[arg-type]
            assert _measure(_read, form, word * (_MAX_CHARS - 1) + "!") < _MAX_SECONDS


def test_names_of_a_form_with_long_labels_are_still_found() -> None:
    long_label = " ".join(itertools.islice(_words(), 300))
    form = build_form(
        {"id": "terms", "type": "checkbox", "label": f"I accept {long_label}"},
        {"id": "color", "type": "text", "label": "Favourite colour of your car"},
        {"id": "size", "type": "text", "label": "Shoe size"},
    )
    split = mentions.split(form.inputs, "the favourite colour of your car is red and my size: 41")
    assert [(item.field.id, item.text) for item in split.mentions] == [
        ("color", "red"),
        ("size", "41"),
    ]
    # A word at the beginning of a long label names it as well.
    assert mentions.find_named(form.inputs, "about aaab") == {"terms"}


def test_addresses_are_found_in_time(subtests: pytest.Subtests) -> None:
    for kind in ["email", "phone", "url"]:
        with subtests.test(kind=kind):
            form = build_form(
                {"type": "text"}, *({"type": kind, "label": f"n{n}"} for n in range(199))
            )
            texts = (
                "a" * 3900 + "@-.x",
                "a." * 1990 + "@x",
                ("a" * 62 + "@ ") * 31 + " ".join(f"a{n}@example.com" for n in range(120)),
                "a" * 2000 + " ".join(f"a{n}@ex.com" for n in range(180)),
                "12345 " * 660,
                "(0" * 1999,
                "http://x " * 440,
                " ".join(f"www.a{n}.example" for n in range(250)),
            )
            for text in texts:
                with subtests.test(start=text[:20]):
                    assert _measure(_read, form, text[:_MAX_CHARS]) < _MAX_SECONDS


def _build_choices(label: Callable[[int], str], kind: str = "select") -> FormDefinition:
    """Returns 200 fields with the 1,000 options of one data table."""
    options = [Option(f"v{n}", (label(n) or "z")[:200]) for n in range(1000)]
    fields = decode_fields(
        *({"type": kind, "label": f"n{n}", "data_source": TABLE} for n in range(200))
    )
    return FormDefinition([msgspec.structs.replace(field, options=options) for field in fields])


def test_options_are_found_in_time(subtests: pytest.Subtests) -> None:
    forms = {
        "same beginning": _build_choices(lambda n: "a " * (n % 100) + "b" + "c" * (n // 100)),
        "long": _build_choices(lambda n: f"x{n:03} " * 40),
        "signs": _build_choices(lambda n: "+ " * (n % 100) + "b" * (n // 100)),
        "several": _build_choices(lambda n: f"x{n:03}", "multi_select"),
    }
    texts = (
        "a " * 1000,
        ("a " * 99 + "bcx ") * 9,
        "+ " * 1000,
        "1," * 990,
        " ".join(f"n{n}: x" for n in range(200)),
    )
    for (name, form), text in itertools.product(forms.items(), texts):
        with subtests.test(name, start=text[:10]):
            assert _measure(_read, form, text) < _MAX_SECONDS


def test_answers_are_checked_in_time(subtests: pytest.Subtests) -> None:
    options = [{"value": f"v{n}", "label": "a"} for n in range(500)]
    chosen = [option["value"] for option in options]

    def build_dependent(first: dict[str, Any], **conditional: Any) -> FormDefinition:
        dependent = {"type": "text", "conditional": {"field": "first", **conditional}}
        return build_form({"id": "first", **first}, *([dependent] * 199))

    long_text = {"type": "textarea", "validation": {"max_length": 100_000}}
    cases: dict[str, tuple[FormDefinition, dict[str, Any]]] = {
        "contains": (
            build_dependent(long_text, operator="contains", value="é" * 100),
            {"first": "ÀÉ" * 50_000},
        ),
        "in": (
            build_dependent(
                {"type": "multi_select", "options": options},
                operator="in",
                value=[f"z{n}" for n in range(100)],
            ),
            {"first": chosen},
        ),
        "options": (
            build_form(*([{"type": "multi_select", "options": options}] * 15)),
            {f"f{n}": chosen for n in range(15)},
        ),
    }
    for name, (form, data) in cases.items():
        with subtests.test(name):
            assert answers.check_answers(form, data).problems == []
            assert _measure(answers.check_answers, form, data) < _MAX_SECONDS


# Patterns


def _build_slow_fields(count: int = 3) -> list[dict[str, Any]]:
    rules = {"pattern": _SLOW_PATTERN, "max_length": 10_000}
    return [
        {"id": f"f{n}", "type": "text", "label": f"Text {n}", "validation": rules}
        for n in range(count)
    ]


async def test_slow_patterns_do_not_hold_the_loop(developer: Client, anonymous: Client) -> None:
    form = await create_form(developer, *_build_slow_fields())
    data = {f"f{n}": f"{_SLOW_TEXT[n:]}"[:10_000] for n in range(3)}
    async with watch_loop() as watch:
        await send(anonymous, form, data)
        chat = await start(anonymous, form)
        await chat.send(_SLOW_TEXT[:_MAX_CHARS])
    assert watch.longest < _MAX_SECONDS


async def test_the_patterns_of_a_request_share_a_budget(
    developer: Client, anonymous: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    fields = [
        {"id": f"f{n}", "type": "text", "label": "Code", "validation": {"pattern": "[a-z]+"}}
        for n in range(3)
    ]
    form = await create_form(developer, *fields)
    data = {f"f{n}": "abc" for n in range(3)}
    assert (await send(anonymous, form, data)).status_code == 201
    monkeypatch.setattr(patterns, "_MAX_SECONDS", 1e-9)
    # The first match uses it up; the second answer is the same.
    data["f2"] = "other"
    assert problems(await send(anonymous, form, data)) == {
        "f2": "takes too long to check; make the answers shorter"
    }


async def test_the_patterns_of_a_definition_are_compiled_off_the_loop(developer: Client) -> None:
    fields = [
        {
            "id": f"f{n}",
            "type": "text",
            "label": "x",
            "validation": {"pattern": rf"(?i)\pL\pN\pL\pN\pL{n}", "max_length": 10},
        }
        for n in range(100)
    ]
    form = await create_form(developer)
    async with watch_loop() as watch:
        answer = await developer.put(f"{PATH}/{form['id']}", {"fields": fields})
    assert answer.status_code in {200, 422}
    assert watch.longest < _MAX_SECONDS


# Data tables


async def _create_choices(client: Client, count: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Returns a form of selects, all from one table of wide rows, and answers to it."""
    columns = [{"name": name, "type": "text"} for name in ("code", "city", "notes")]
    table = await create_table(client, columns)
    rows = [{"code": f"c{n}", "city": f"City {n}", "notes": "x" * 1500} for n in range(1000)]
    for first in range(0, len(rows), 500):
        await add_rows(client, table, *rows[first : first + 500])
    source = {"table_id": table["id"], "value_column": "code", "label_column": "city"}
    fields = [
        {"id": f"f{n}", "type": "select", "label": f"Place {n}", "data_source": source}
        for n in range(count)
    ]
    form = await create_form(client, *fields)
    return form, {f"f{n}": f"c{n}" for n in range(count)}


async def test_the_options_of_a_table_are_read_once(
    developer: Client, anonymous: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    form, data = await _create_choices(developer, 200)
    with record_statements(monkeypatch, "data_rows") as statements:
        async with watch_loop() as watch:
            assert (await send(anonymous, form, data)).status_code == 201
    assert len(statements) == 1
    assert watch.longest < _MAX_SECONDS
    assert problems(await send(anonymous, form, {**data, "f7": "c1000"})) == {
        "f7": "must be one of the options"
    }
    chat = await start(anonymous, form)
    with record_statements(monkeypatch, "data_rows") as statements:
        async with watch_loop() as watch:
            turn = await chat.say("place 0 is City 7, place 1 is City 999")
    assert turn["assistant_message"]["content"].startswith("I noted “Place 1”: City 999.")
    # The options, and whether the answers are among them.
    assert len(statements) == 2
    assert watch.longest < _MAX_SECONDS


async def test_a_form_has_a_limited_number_of_data_sources(developer: Client) -> None:
    columns = [{"name": f"c{n}", "type": "text"} for n in range(21)]
    table = await create_table(developer, columns)
    fields = [
        {
            "id": f"f{n}",
            "type": "select",
            "label": "x",
            "data_source": {"table_id": table["id"], "value_column": f"c{n}", "label_column": "c0"},
        }
        for n in range(21)
    ]
    refused(await developer.post(PATH, {"name": "F", "fields": fields}), 422, "validation_error")
    await create_form(developer, *fields[:20], {**fields[0], "id": "again"})
