"""Password rules and hashing."""

import time

import pytest

from app.security import passwords
from tests.world import PASSWORD

_PASSWORDS: list[tuple[str, str | None]] = [
    ("Correct7Horse", None),
    ("Abcdefg1", None),
    ("Pässwörd1", None),
    ("A b c d 1", None),
    ("A1" + "a" * 126, None),
    ("", "at least 8"),
    ("Abcdef1", "at least 8"),
    ("A1" + "a" * 127, "at most 128"),
    ("abcdefg1", "uppercase"),
    ("ABCDEFG1", "lowercase"),
    ("Abcdefgh", "number"),
    ("12345678", "uppercase"),
]


def test_a_password_needs_length_both_cases_and_a_number(subtests: pytest.Subtests) -> None:
    for password, problem in _PASSWORDS:
        with subtests.test(password=password, problem=problem):
            message = passwords.find_problem(password)
            assert message is None if problem is None else problem in (message or "")


@pytest.mark.usefixtures("full_password_cost")
async def test_a_password_is_stored_as_argon2id_of_the_recommended_cost() -> None:
    stored = await passwords.hash_password(PASSWORD)
    assert stored.startswith("$argon2id$v=19$m=19456,t=2,p=1$")


@pytest.mark.usefixtures("full_password_cost")
async def test_the_hash_of_a_recovery_code_never_changes() -> None:
    """Stored hashes of codes are compared with new ones."""
    code_hash = await passwords.hash_code("ABCDE-12345", "usr_1")
    assert code_hash == "68d782d87e882171c46bb6cf6954f1530c227c6948a71044182fef59db29e1f4"


async def test_two_hashes_of_one_password_differ() -> None:
    first, second = [await passwords.hash_password(PASSWORD) for _ in range(2)]
    assert first != second


async def test_only_the_same_password_is_correct(subtests: pytest.Subtests) -> None:
    for password, is_correct in [(PASSWORD, True), (PASSWORD + " ", False)]:
        with subtests.test(password=password, is_correct=is_correct):
            stored = await passwords.hash_password(PASSWORD)
            assert await passwords.verify_password(stored, password) is is_correct


async def test_an_unreadable_hash_accepts_no_password() -> None:
    assert await passwords.verify_password("not a hash", PASSWORD) is False


async def test_a_missing_hash_accepts_no_password(subtests: pytest.Subtests) -> None:
    for password in (PASSWORD, "", "nobody has this password"):
        with subtests.test(password=password):
            assert await passwords.verify_password(None, password) is False


async def _measure_cpu_seconds(stored: str | None) -> float:
    started = time.process_time()
    await passwords.verify_password(stored, "Wrong7Horse")
    return time.process_time() - started


@pytest.mark.usefixtures("full_password_cost")
async def test_a_missing_hash_takes_as_much_work_as_a_stored_one() -> None:
    stored = await passwords.hash_password(PASSWORD)
    with_hash = min([await _measure_cpu_seconds(stored) for _ in range(3)])
    without_hash = min([await _measure_cpu_seconds(None) for _ in range(3)])
    assert without_hash > with_hash / 2
