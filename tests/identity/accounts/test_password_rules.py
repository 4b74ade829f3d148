"""Rules for new passwords."""

import pytest

from tests.identity.accounts.api_calls import log_in, register, registration_body
from tests.world import Client, World

PASSWORD_RULES = {
    "at least 8 characters",
    "at most 128 characters",
    "an uppercase letter",
    "a lowercase letter",
    "a number",
}


_BROKEN_RULES: list[tuple[str, set[str]]] = [
    ("Short7s", {"at least 8 characters"}),
    ("Aa1" + "x" * 126, {"at most 128 characters"}),
    ("lowercase7only", {"an uppercase letter"}),
    ("UPPERCASE7ONLY", {"a lowercase letter"}),
    ("NoNumberAtAll", {"a number"}),
    ("Äö7üßéà", {"at least 8 characters"}),
    ("!!!!!!!!", {"an uppercase letter", "a lowercase letter", "a number"}),
    ("12345678", {"an uppercase letter", "a lowercase letter"}),
    ("", PASSWORD_RULES - {"at most 128 characters"}),
    ("abc", PASSWORD_RULES - {"at most 128 characters", "a lowercase letter"}),
    ("x" * 129, {"at most 128 characters", "an uppercase letter", "a number"}),
    (
        " " * 1024,
        {"at most 128 characters", "an uppercase letter", "a lowercase letter", "a number"},
    ),
]


async def test_the_error_names_every_rule_that_a_password_breaks(
    anonymous: Client, subtests: pytest.Subtests
) -> None:
    for password, rules in _BROKEN_RULES:
        with subtests.test(password=password, rules=rules):
            answer = await anonymous.post("/auth/register", registration_body(password=password))
            assert answer.status_code == 422
            details = answer.json()["error"]["details"]
            assert set(details) == {"password"}
            assert {rule for rule in PASSWORD_RULES if rule in details["password"]} == rules


async def test_a_common_password_is_refused_in_any_case(
    anonymous: Client, subtests: pytest.Subtests
) -> None:
    cases: list[str] = [
        "Password1",
        "pASSWORD1",
        "PassWord1",
        "Qwerty123",
        "qWERTY123",
        "Passw0rd",
        "pASSW0RD",
    ]
    for password in cases:
        with subtests.test(password=password):
            answer = await anonymous.post("/auth/register", registration_body(password=password))
            assert answer.status_code == 422
            assert "common" in answer.json()["error"]["details"]["password"]


async def test_a_password_of_a_wrong_type_or_size_is_refused(
    anonymous: Client, subtests: pytest.Subtests
) -> None:
    cases: list[object] = [5, None, [], "x" * 1025]
    for password in cases:
        with subtests.test(password=password):
            answer = await anonymous.post("/auth/register", registration_body(password=password))
            assert answer.status_code == 422
            assert set(answer.json()["error"]["details"]) == {"password"}


async def test_a_password_that_follows_the_rules_signs_in(
    world: World, subtests: pytest.Subtests
) -> None:
    cases: list[str] = [
        "Eight7ch",
        "Aa1" + "x" * 125,
        "Aa1" + "é" * 125,
        "Żółć7Gęślą",
        "Pass word with 1 space",
        " Aa345678 ",
        "Aa1🐎🔋📎🐴🐎",
        "Aa1'\"\\;--%_${}<>",
    ]
    for password in cases:
        anonymous = world.anonymous()
        with subtests.test(password=password):
            account = await register(anonymous, password=password)
            assert (await log_in(anonymous, account["email"], password)).status_code == 200


async def test_every_character_of_the_longest_password_is_compared(
    world: World, subtests: pytest.Subtests
) -> None:
    for attempt in ("Aa1" + "x" * 124, "Aa1" + "x" * 124 + "y"):
        anonymous = world.anonymous()
        with subtests.test(attempt=attempt):
            account = await register(anonymous, password="Aa1" + "x" * 125)
            assert (await log_in(anonymous, account["email"], attempt)).status_code == 401


async def test_spaces_around_a_password_are_part_of_it(anonymous: Client) -> None:
    account = await register(anonymous, password=" Aa345678 ")
    assert (await log_in(anonymous, account["email"], "Aa345678")).status_code == 401


async def test_a_password_with_decomposed_accents_is_the_same(
    anonymous: Client,
) -> None:
    account = await register(anonymous, password="Caf\u00e9Noir7")
    assert (await log_in(anonymous, account["email"], "Cafe\u0301Noir7")).status_code == 200
