"""Reads HTTP responses whose status a test expects."""

from typing import Any

import httpx

from tests.world import Client


def read_json(response: httpx.Response, status: int = 200) -> Any:
    """Returns the decoded body, or None where it is empty."""
    assert response.status_code == status, response.text
    return response.json() if response.content else None


async def post_json(client: Client, path: str, body: dict[str, Any], status: int = 201) -> Any:
    return read_json(await client.post(path, body), status)


def read_field_errors(response: httpx.Response) -> dict[str, str]:
    """Returns the message of each refused field of a 422 response."""
    error = read_json(response, 422)["error"]
    assert error["code"] == "validation_error"
    details: dict[str, str] = error["details"]
    return details
