"""The daily budgets of embed keys: messages and tokens, from midnight to midnight in UTC."""

from datetime import timedelta

from app.domain.agents.definition.api import EmbeddedAgent
from app.kit import clock
from app.services import Services

from . import queries
from .errors import DailyLimitReached


async def take_message(services: Services, agent: EmbeddedAgent) -> None:
    """Counts one message. Raises DailyLimitReached when the messages or tokens of the day are used
    up.
    """
    rules = agent.rules
    if not rules.has_budget:
        return
    tenant_id = agent.runtime.tenant_id
    async with services.db.tx(tenant_id, autocommit=True) as tx:
        is_taken = await queries.take_message(
            tx,
            tenant_id,
            agent.embed_key_id,
            rules.max_messages_per_day,
            rules.max_tokens_per_day,
        )
    if not is_taken:
        raise _refusal()


async def return_message(services: Services, agent: EmbeddedAgent) -> None:
    """Takes back what `take_message` counted, for a message that was not accepted."""
    if not agent.rules.has_budget:
        return
    tenant_id = agent.runtime.tenant_id
    async with services.db.tx(tenant_id, autocommit=True) as tx:
        await queries.return_message(tx, tenant_id, agent.embed_key_id)


async def add_tokens(services: Services, agent: EmbeddedAgent, tokens: int) -> None:
    """The turn that uses up the day's tokens is answered; the next one is refused."""
    tenant_id = agent.runtime.tenant_id
    async with services.db.tx(tenant_id, autocommit=True) as tx:
        await queries.add_tokens(tx, tenant_id, agent.embed_key_id, tokens)


def _refusal() -> DailyLimitReached:
    now = clock.now()
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)
    wait = max(1, round((midnight - now).total_seconds()))
    return DailyLimitReached(
        "This chat has reached its limit for today; come back tomorrow",
        details={"retry_after": wait},
        headers={"Retry-After": str(wait)},
    )
