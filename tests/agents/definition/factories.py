"""Agents for tests, and the fields that their bodies have."""

from typing import Any

from app.kit import clock
from app.kit.ids import new_id
from app.services import Services
from db.models import Agent
from db.session import ALL_TENANTS
from tests.world import Client

PATH = "/api/v1/agents"
BODY = {"name": "Shop", "primary_model": "gpt-4o", "system_prompt": "You help."}
SUMMARY_KEYS = {
    "id",
    "name",
    "description",
    "primary_model",
    "status",
    "temperature",
    "created_at",
    "updated_at",
}
AGENT_KEYS = SUMMARY_KEYS | {"system_prompt", "max_tokens", "version"}
NO_AGENT = "agt_00000000000000000000000000"
STATUSES = ["draft", "published", "archived"]
READ_ONLY_FIELDS = {"id": "agt_mine", "version": 7}


async def create_agent(caller: Client, **fields: Any) -> dict[str, Any]:
    answer = await caller.post(PATH, {**BODY, **fields})
    assert answer.status_code == 201, answer.text
    agent: dict[str, Any] = answer.json()
    return agent


async def insert_agents(
    services: Services, tenant_id: str, *names: str, status: str = "draft"
) -> list[str]:
    """Inserts agents with equal times, so that sorting has ties; returns their ids."""
    now = clock.now()
    rows = [
        Agent(
            id=new_id("agt"),
            tenant_id=tenant_id,
            name=name,
            primary_model="gpt-4o",
            provider="openai",
            system_prompt="You help.",
            status=status,
            created_at=now,
            updated_at=now,
        )
        for name in names
    ]
    async with services.db.tx(ALL_TENANTS) as tx:
        (await tx.session()).add_all(rows)
    return [row.id for row in rows]


INVALID_FIELDS = [
    ("name", ""),
    ("name", "x" * 101),
    ("name", "   "),
    ("name", "two\nlines"),
    ("name", "a\x00b"),
    ("name", None),
    ("name", 5),
    ("description", "x" * 2001),
    ("description", None),
    ("primary_model", ""),
    ("primary_model", " "),
    ("primary_model", "x" * 201),
    ("primary_model", None),
    ("system_prompt", ""),
    ("system_prompt", " \n\t"),
    ("system_prompt", "x" * 100_001),
    ("system_prompt", None),
    ("temperature", -0.01),
    ("temperature", 1.01),
    ("temperature", "0.5"),
    ("temperature", None),
    ("temperature", True),
    ("max_tokens", 0),
    ("max_tokens", -1),
    ("max_tokens", 1_000_001),
    ("max_tokens", 1.5),
    ("max_tokens", "10"),
    ("max_tokens", None),
    ("max_tokens", True),
    ("status", "Published"),
    ("status", ""),
    ("status", None),
]
