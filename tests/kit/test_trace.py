"""Traces and correlation ids."""

import contextvars

import pytest

from app.kit import trace


def test_a_plain_id_of_the_caller_is_kept(subtests: pytest.Subtests) -> None:
    for caller_id in ["a", "req-1", "order:42", "A.b_c+d=", "x" * 128, "0123456789abcdef"]:
        with subtests.test(caller_id=caller_id):
            assert trace.safe_id(caller_id, "req") == caller_id


_CASES: list[str | None] = [
    None,
    "",
    "x" * 129,
    "a b",
    "a\tb",
    "a\n",
    "a\r\nb",
    "\n",
    "a\0",
    "a;b",
    "a/b",
    "<b>",
    '"',
    "\u00e9",
]


def test_an_id_that_is_not_plain_is_replaced(subtests: pytest.Subtests) -> None:
    for caller_id in _CASES:
        with subtests.test(caller_id=caller_id):
            new_id = trace.safe_id(caller_id, "req")
            assert new_id.startswith("req_")
            assert len(new_id) == 30


def test_outside_of_requests_and_jobs_one_new_trace_is_kept() -> None:
    def twice() -> tuple[trace.Trace, trace.Trace]:
        return trace.current(), trace.current()

    first, second = contextvars.Context().run(twice)
    assert first is second


def test_there_is_no_current_trace_before_one_begins() -> None:
    assert contextvars.Context().run(trace.current_or_none) is None
