"""Requests that the tests of logs and statistics share."""

from typing import Any

from app.services import Services
from db.session import ALL_TENANTS
from tests.model_server import Reply
from tests.talk import Talker


async def run_sql(services: Services, sql: str, *args: object) -> None:
    async with services.db.tx(ALL_TENANTS) as tx:
        await (await tx.raw()).execute(sql, *args)


async def get_stats(talk: Talker, period: str = "all_time") -> dict[str, Any]:
    answer = await talk.client.get(f"{talk.path}/stats", params={"period": period})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def talk_with_sub_agent(talk: Talker) -> Talker:
    """The next turn hands a task over."""
    helper = await talk.with_helper()
    helper.script(Reply(texts=["At 9."], usage=(100, 10)))
    call = ("delegate_to_helper", {"task": "hours"})
    talk.script(
        Reply(texts=[], calls=[call], usage=(5, 1)),
        Reply(texts=["It opens at 9."], usage=(7, 2)),
    )
    return helper
