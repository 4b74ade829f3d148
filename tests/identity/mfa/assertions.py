"""Assertions on refused requests."""

import httpx


def read_error(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]["code"]


def assert_code_refused(answer: httpx.Response) -> None:
    assert read_error(answer) == (422, "validation_error")
    assert set(answer.json()["error"]["details"]) == {"code"}
