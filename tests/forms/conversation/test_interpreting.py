"""Answers to a form in messages of people."""

import time
from collections.abc import Mapping
from typing import Any

import pytest

from app.domain.forms.conversation import interpreting, mentions
from app.domain.forms.conversation.interpreting import Extract, Question, Reading
from tests.forms.definition.field_builders import build_form

_TOPICS = [{"value": "sales", "label": "Sales"}, {"value": "help", "label": "Help desk"}]
FIELDS: tuple[dict[str, Any], ...] = (
    {"id": "name", "type": "text", "label": "Your name", "required": True},
    {"id": "email", "type": "email", "label": "Your e-mail"},
    {"id": "topic", "type": "select", "label": "What is it about?", "options": _TOPICS},
    {"id": "guests", "type": "number", "label": "How many guests?", "validation": {"max": 9}},
    {"id": "phone", "type": "phone", "label": "Phone number"},
    {"id": "message", "type": "textarea", "label": "Message"},
)
ANSWERED = {"name": "Ada", "email": "ada@example.com"}
MAIL = "ada@example.com"


def ask(
    current: str,
    answers: Mapping[str, Any] | None = None,
    fields: tuple[dict[str, Any], ...] = FIELDS,
) -> Question:
    form = build_form(*fields)
    return Question(fields=form.inputs, answers=answers or {}, current=form.by_id[current])


def read(current: str, text: str, answers: Mapping[str, Any] | None = None) -> Reading:
    return interpreting.read(ask(current, answers), text)


# The field that was asked for, a message, and the values that it stands for.
_ANSWERS: list[tuple[str, str, dict[str, Any]]] = [
    ("name", "Ada", {"name": "Ada"}),
    ("name", "  Ada Lovelace. ", {"name": "Ada Lovelace"}),
    ("name", "Hi, I'm Ada", {"name": "Ada"}),
    ("name", "Hi, I\u2019m Ada", {"name": "Ada"}),
    ("name", "hello there! I am Ada.", {"name": "Ada"}),
    ("name", "well, ok, it's Ada", {"name": "Ada"}),
    ("name", "Yes, call me Ada", {"name": "Ada"}),
    ("name", "My name is Ada", {"name": "Ada"}),
    ("name", "My name's Ada!", {"name": "Ada"}),
    ("name", "name: Ada", {"name": "Ada"}),
    # Words of a lead-in are a part of some answers.
    ("name", "Hello Kitty", {"name": "Hello Kitty"}),
    ("name", "So Young", {"name": "So Young"}),
    ("name", "yes", {"name": "yes"}),
    ("name", "Hello!", {}),
    ("name", "Hi there", {}),
    ("email", f"it's {MAIL}", {"email": MAIL}),
    ("email", f"Sure, {MAIL}.", {"email": MAIL}),
    ("topic", "sales", {"topic": "sales"}),
    ("topic", "the help desk please", {"topic": "help"}),
    ("topic", "2", {"topic": "help"}),
    ("guests", "there will be 3 of us", {"guests": 3}),
    ("guests", "I bring 3 guests to the party", {"guests": 3}),
    ("guests", "three", {"guests": 3}),
    ("phone", "call +44 20 7946 0958", {"phone": "+44 20 7946 0958"}),
    ("message", "Hi, it's late.", {"message": "Hi, it's late."}),
    ("message", "How much is it?", {"message": "How much is it?"}),
]
_SEVERAL: list[tuple[str, str, dict[str, Any]]] = [
    ("name", f"My name is Ada and my mail is {MAIL}", {"name": "Ada", "email": MAIL}),
    (
        "name",
        "name: Ada; topic: sales; guests: 3",
        {"name": "Ada", "topic": "sales", "guests": 3},
    ),
    ("name", "Name: Ada\nGuests: 3\n", {"name": "Ada", "guests": 3}),
    ("name", f"Ada, {MAIL}", {"name": "Ada", "email": MAIL}),
    ("name", f"Ada and my e-mail address is {MAIL}", {"name": "Ada", "email": MAIL}),
    ("name", f"I'm Ada, you can reach me at {MAIL}", {"email": MAIL}),
    (
        "name",
        f"Ada, {MAIL}, +44 20 7946 0958",
        {"name": "Ada", "email": MAIL, "phone": "+44 20 7946 0958"},
    ),
    ("email", f"{MAIL}, and the number of guests is 4", {"email": MAIL, "guests": 4}),
    # The text of a message is not taken apart.
    (
        "message",
        f"On my bill the name is wrong. Write to {MAIL}",
        {"message": f"On my bill the name is wrong. Write to {MAIL}", "email": MAIL},
    ),
    ("message", "My message is: the name is wrong", {"message": "the name is wrong"}),
]


def test_a_message_answers_the_question(subtests: pytest.Subtests) -> None:
    for current, text, expected in _ANSWERS:
        with subtests.test(text, current=current):
            reading = read(current, text)
            assert (reading.values, reading.problems) == (expected, {})


def test_a_message_answers_several_questions(subtests: pytest.Subtests) -> None:
    for current, text, expected in _SEVERAL:
        with subtests.test(text, current=current):
            reading = read(current, text)
            assert {key: reading.values.get(key) for key in expected} == expected
            assert not reading.problems


def test_a_message_corrects_an_answer(subtests: pytest.Subtests) -> None:
    for current, text, expected in [
        ("topic", "actually my e-mail is ada2@example.com", {"email": "ada2@example.com"}),
        ("topic", "Actually, my mail should be ada2@example.com.", {"email": "ada2@example.com"}),
        ("topic", "change my name to Bob", {"name": "Bob"}),
        ("topic", "Please change the name to Bob", {"name": "Bob"}),
        ("topic", "my name is Bob", {"name": "Bob"}),
        ("topic", "sorry, ada2@example.com", {"email": "ada2@example.com"}),
        ("topic", "Oh sorry, I meant ada2@example.com", {"email": "ada2@example.com"}),
        (
            "guests",
            "3, and sorry, my name is Bob",
            {"guests": 3, "name": "Bob"},
        ),
        ("message", "actually my e-mail is ada2@example.com", {"email": "ada2@example.com"}),
        ("message", "sorry, ada2@example.com", {"email": "ada2@example.com"}),
        ("message", "Sorry, change my name to Bob", {"name": "Bob"}),
        (
            "name",
            "My name is Ad, sorry, my name is Ada",
            {"name": "Ada"},
        ),
    ]:
        with subtests.test(current=current, text=text, expected=expected):
            assert read(current, text, ANSWERED).values == expected


def test_an_answer_is_kept_unless_a_message_corrects_or_names_it(subtests: pytest.Subtests) -> None:
    for current, text, kept in [
        ("topic", "sales, write to bob@example.com", "email"),
        ("phone", "bob@example.com", "email"),
        ("message", "Actually the order was one of bob@example.com for his shop", "email"),
        ("message", "I looked twice: the name is wrong on my bill", "name"),
        ("message", "Bob", "name"),
        ("guests", "what is my name to you", "name"),
    ]:
        with subtests.test(current=current, text=text, kept=kept):
            assert kept not in read(current, text, ANSWERED).values


def test_a_message_skips_a_question(subtests: pytest.Subtests) -> None:
    for current, text, is_skip in [
        ("email", "skip", True),
        ("email", " Skip this. ", True),
        ("email", "No thanks!", True),
        ("email", "none", True),
        ("email", "I'd rather not say", True),
        ("name", "skip", True),
        # It may be the answer where there has to be one.
        ("name", "None", False),
        ("email", "skip@example.com", False),
        ("message", "Skip the onions", False),
    ]:
        with subtests.test(current=current, text=text, is_skip=is_skip):
            reading = read(current, text)
            assert reading.is_skip is is_skip
            assert bool(reading.values) is not is_skip


def test_an_option_that_is_called_none_is_chosen_and_not_skipped() -> None:
    options = [{"value": "x", "label": "None"}, {"value": "y", "label": "Some"}]
    field = {"id": "diet", "type": "select", "label": "Diet", "options": options}
    reading = interpreting.read(ask("diet", fields=(field,)), "none")
    assert (reading.values, reading.is_skip) == ({"diet": "x"}, False)


def test_a_question_of_a_visitor_is_not_stored(subtests: pytest.Subtests) -> None:
    for text in [
        "What is this for?",
        "Hi, what is this for?",
        "why do you need my name?",
        "Is it safe to tell you my name?",
        "Which name is needed?",
        "what?",
    ]:
        with subtests.test(text=text):
            reading = read("name", text)
            assert (reading.values, reading.is_question) == ({}, True)
            assert not interpreting.needs_model(ask("name"), text, reading, is_trusted=True)


def test_a_text_that_is_no_question_may_end_with_a_question_mark() -> None:
    assert read("name", "Ada Lovelace?").values == {"name": "Ada Lovelace?"}


# Labels of text fields, the question, a message, and the values.
_SHARED: list[tuple[list[str], str, dict[int, str]]] = [
    (
        ["First name", "Last name"],
        "My first name is Ada and my last name is Byron",
        {0: "Ada", 1: "Byron"},
    ),
    (["First name", "Last name"], "My name is Ada", {0: "Ada"}),
    (["Name", "Company name"], "my name is Ada", {0: "Ada"}),
    (["Name", "Company name"], "company name: Acme, name: Ada", {0: "Ada", 1: "Acme"}),
    (["Name", "Company name"], "The company is Acme", {1: "Acme"}),
    (["City", "City of birth"], "city of birth: Rome", {1: "Rome"}),
    (["What is your name?", "What is the name of your pet?"], "name is Ada", {0: "Ada"}),
    (["Name (as in your passport)", "Pet"], "Pet: Rex", {1: "Rex"}),
]


def test_names_of_fields_that_share_words(subtests: pytest.Subtests) -> None:
    for labels, text, expected in _SHARED:
        with subtests.test(text, labels=labels):
            fields = tuple({"type": "text", "label": label} for label in labels)
            reading = interpreting.read(ask("f0", fields=fields), text)
            assert reading.values == {f"f{number}": value for number, value in expected.items()}


def test_a_wrong_answer_has_a_problem(subtests: pytest.Subtests) -> None:
    for current, text, wrong in (
        ("email", "I have none of those", "email"),
        ("name", "my e-mail is ada", "email"),
        ("guests", "guests: 12", "guests"),
        ("topic", "something else", "topic"),
    ):
        with subtests.test(text):
            reading = read(current, text)
            assert (set(reading.values), set(reading.problems)) == (set(), {wrong})


# Texts that are long or use letters in an unusual way.

_HOSTILE = (
    " " * 4000 + "x",
    "name is " * 500,
    "name" + " " * 3990,
    "name " * 800,
    "and " * 990 + "name is Ada",
    "hi " * 1333,
    "sorry " * 660,
    "a@" * 2000,
    "1 " * 2000,
    "e-mail is ma\u0131l is MA\u0130L is " * 100,
    "\U0001f600" * 4000,
    "\u202e\u05e9\u05dc\u05d5\u05dd " * 600,
    "na\u0308me is " * 400,
    "?" * 4000,
    "\n" * 3999 + "x",
    "name:" * 800,
    "." * 4000,
)


def test_a_hostile_message_is_read_in_no_time(subtests: pytest.Subtests) -> None:
    for number, text in enumerate(_HOSTILE):
        for current in ("name", "email", "message", "phone"):
            with subtests.test(str(number), current=current):
                question = ask(current, {"name": "Ada"})
                started = time.process_time()
                interpreting.read(question, text, Extract({"name": "Ada"}, is_trusted=False))
                assert time.process_time() - started < 0.05


def test_words_before_a_name_are_dropped_in_linear_time() -> None:
    text = "and " * 60_000
    started = time.process_time()
    assert mentions.trim_end(text) == ""
    assert time.process_time() - started < 0.3


def test_letters_of_all_scripts_are_kept() -> None:
    for name in ("\u05e9\u05dc\u05d5\u05dd", "\U0001f600 Ada", "Zo\u00eb", "\u5c71\u7530"):
        assert read("name", f"my name is {name}").values == {"name": name}


# What a model has found


def test_a_model_that_is_not_trusted_may_only_repeat_the_message(subtests: pytest.Subtests) -> None:
    cases: list[tuple[str, dict[str, Any], str | None]] = [
        ("people usually call me Ada Byron", {"name": "Ada Byron"}, "Ada Byron"),
        ("people usually call me ada  byron", {"name": "Ada Byron"}, "Ada Byron"),
        ("people usually call me Ada Byron", {"name": "Grace"}, None),
        # A part of a word is not what the message says.
        ("people usually call me Ada Byron", {"name": "ad"}, None),
        ("people usually call me Ada Byron", {"name": ["Ada"]}, None),
        ("people usually call me Ada Byron", {"name": None}, None),
        ("people usually call me Ada Byron", {"other": "Ada"}, None),
    ]
    for text, found, expected in cases:
        with subtests.test(text=text, found=found, expected=expected):
            reading = interpreting.read(ask("name"), text, Extract(found))
            assert reading.values == {"name": expected or text}


def test_a_model_that_is_not_trusted_answers_only_what_was_asked_or_named() -> None:
    found = Extract({"topic": "sales", "guests": 3, "name": "buy"})
    reading = interpreting.read(ask("email", {"name": "Ada"}), f"{MAIL} to buy for 3", found)
    assert reading.values == {"email": MAIL}


def test_values_of_a_trusted_model_are_used_if_their_fields_take_them(
    subtests: pytest.Subtests,
) -> None:
    cases: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
        ("name", {"name": "Ada", "topic": "help"}, {"name": "Ada", "topic": "help"}),
        ("name", {"name": "Ada", "guests": 3}, {"name": "Ada", "guests": 3}),
        ("name", {"name": "Ada", "guests": 10}, {"name": "Ada"}),
        ("name", {"name": "Ada", "guests": "3"}, {"name": "Ada"}),
        ("name", {"name": "Ada", "topic": "other"}, {"name": "Ada"}),
        ("name", {"name": "Ada", "email": {"a": 1}}, {"name": "Ada"}),
        ("name", {"name": "Ada", "email": "", "unknown": 1}, {"name": "Ada"}),
        ("topic", {"topic": "sales", "name": "Bob"}, {"topic": "sales"}),
    ]
    for current, found, expected in cases:
        with subtests.test(current=current, found=found, expected=expected):
            answers = {"name": "Ada"} if current != "name" else {}
            text = "we want something to buy there"
            reading = interpreting.read(
                ask(current, answers), text, Extract(found, is_trusted=True)
            )
            assert reading.values == expected


def test_what_the_message_says_plainly_wins_over_the_model() -> None:
    found = Extract({"email": "eve@example.com"}, is_trusted=True)
    reading = interpreting.read(ask("name"), f"Ada, {MAIL}", found)
    assert reading.values == {"name": "Ada", "email": MAIL}


def test_a_text_that_a_trusted_model_finds_no_answer_in_is_not_stored() -> None:
    found = Extract({"name": None}, is_trusted=True)
    text = "let me think about it for a moment"
    assert interpreting.read(ask("name"), text, found).values == {}
    assert interpreting.read(ask("message"), text, found).values == {"message": text}


def test_a_model_is_asked_when_it_may_find_more(subtests: pytest.Subtests) -> None:
    for current, text, trusted, local in [
        ("name", "Ada", False, False),
        ("name", "well hello there, most people call me Ada", True, True),
        ("topic", "I have a problem with my computer", True, False),
        ("guests", "hm", True, False),
        ("name", "skip", False, False),
        ("email", f"you can always reach me at {MAIL}", True, False),
    ]:
        with subtests.test(current=current, text=text, trusted=trusted, local=local):
            question, reading = ask(current), read(current, text)
            needed = [
                interpreting.needs_model(question, text, reading, is_trusted=is_trusted)
                for is_trusted in (True, False)
            ]
            assert needed == [trusted, local]
