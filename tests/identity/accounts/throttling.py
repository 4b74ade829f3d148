"""Failed attempts, and the check that refuses blocked callers."""

from typing import Any

import pytest

from app.security import throttle
from app.security.throttle import Rule, Subject
from app.services import Services
from db.session import ALL_TENANTS
from tests.identity.accounts.api_calls import log_in
from tests.identity.accounts.values import WRONG_PASSWORD
from tests.world import Client


async def guess_passwords(caller: Client, email: str, times: int = 5) -> list[int]:
    return [(await log_in(caller, email, WRONG_PASSWORD)).status_code for _ in range(times)]


async def count_failures(services: Services, rule: Rule, name: str, times: int) -> None:
    """Counts failed attempts without the work of hashing."""
    async with services.db.tx(ALL_TENANTS) as tx:
        for _ in range(times):
            await throttle.record_attempt(tx, [Subject(rule, name)], succeeded=False)


def skip_block_check(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets an attempt pass the first check, as if it was sent before the block started."""

    async def pass_check(*_args: Any) -> None:
        return

    monkeypatch.setattr(throttle, "refuse_blocked", pass_check)
