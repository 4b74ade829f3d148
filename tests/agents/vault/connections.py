"""Runs connection tests of new credentials."""

from typing import Any

from tests.agents.vault.api import get_credential, list_events, run_connection_test
from tests.agents.vault.factories import create_credential
from tests.world import Client


async def check_connection(caller: Client, type_: str, secrets: dict[str, Any]) -> dict[str, Any]:
    """Returns the result of a test of a new credential.

    Checks that the credential and the events match the result and contain no secret.
    """
    created = await create_credential(caller, type_, secrets)
    result = await run_connection_test(caller, created["id"])
    credential = await get_credential(caller, created["id"])
    assert credential["is_valid"] is result["success"]
    assert credential["last_tested_at"] == result["tested_at"]
    events = await list_events(caller, "invalid")
    reasons = [] if result["success"] else [result["message"]]
    assert [event["reason"] for event in events] == reasons
    for name in ("password", "passphrase", "private_key"):
        secret = secrets.get(name)
        assert not secret or secret not in str(result) + str(events)
    return result
