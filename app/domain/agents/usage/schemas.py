from datetime import date, datetime
from typing import Any, ClassVar, Literal

import msgspec

from app.domain.platform.storage.schemas import StorageLimit

Period = Literal["24h", "7d", "30d", "all_time"]
UsagePeriod = Literal["24h", "7d", "30d", "90d", "all_time"]

_MODEL_EXAMPLE: dict[str, Any] = {
    "prompt_tokens": 8120,
    "completion_tokens": 1000,
    "total_tokens": 9120,
    "cost_usd": 0.001818,
    "conversations": 12,
}
_EXAMPLE: dict[str, Any] = {
    "requests": 431,
    **_MODEL_EXAMPLE,
    "tool_executions": 7,
    "workflow_executions": 2,
}
_WINDOW_EXAMPLE: dict[str, Any] = {"limit": 300, "remaining": 288, "reset": 1767268860}


class AgentStats(msgspec.Struct):
    """`total_tokens_used` counts all models, those of hosted embeddings, transcription and speech
    included: the same tokens as `total_tokens` of the agent in the usage report, whose `by_model`
    tells them apart. The other figures count turns alone, without previews. Ratings count with the
    answers that they are about, and `conversations_by_source` those that began in the period, both
    while these are stored. A period ends now; those of the usage report have whole hours or days.
    """

    example: ClassVar[dict[str, Any]] = {
        "agent_id": "agt_01k9x3m7e8c0v2q4r6t8w0y2a4",
        "total_conversations": 12,
        "total_messages": 48,
        "total_tokens_used": 9120,
        "avg_response_time_ms": 812.5,
        "failed_turns": 1,
        "ratings_up": 9,
        "ratings_down": 2,
        "conversations_by_source": {"console": 3, "embed": 9},
        "period": "all_time",
    }

    agent_id: str
    total_conversations: int
    total_messages: int
    total_tokens_used: int
    avg_response_time_ms: float
    failed_turns: int
    ratings_up: int
    ratings_down: int
    conversations_by_source: dict[str, int]
    period: Period


class ModelSums(msgspec.Struct, kw_only=True):
    """What models were used for, in turns, for hosted embeddings, transcription and speech, and for
    `/v1/embeddings`. `cost_usd` is 0 for models whose price is not known; `conversations` counts
    those that began, without previews.
    """

    example: ClassVar[dict[str, Any]] = _MODEL_EXAMPLE

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    cost_usd: float
    conversations: int


class UsageSums(ModelSums, kw_only=True):
    """All that is counted. With a filter, what is not counted by agent or model is null."""

    example: ClassVar[dict[str, Any]] = _EXAMPLE

    requests: int | None
    tool_executions: int | None
    workflow_executions: int | None


class DayUsage(UsageSums, kw_only=True):
    """The usage of a day in UTC."""

    example: ClassVar[dict[str, Any]] = {"date": "2026-01-01", **_EXAMPLE}

    date: date


class AgentUsage(ModelSums, kw_only=True):
    """The usage of an agent. One that was deleted has no name."""

    example: ClassVar[dict[str, Any]] = {
        "agent_id": "agt_01k9x3m7e8c0v2q4r6t8w0y2a4",
        "agent_name": "Support",
        **_MODEL_EXAMPLE,
        "tool_executions": 7,
    }

    agent_id: str
    agent_name: str | None
    tool_executions: int | None


class ModelUsage(ModelSums, kw_only=True):
    example: ClassVar[dict[str, Any]] = {"model": "openai/gpt-4o-mini", **_MODEL_EXAMPLE}

    model: str


class WindowLimit(msgspec.Struct):
    """A limit of requests. `limit` is null without one; `remaining` and `reset`, in seconds since
    1970, are null as well while the rate limiter is unavailable.
    """

    example: ClassVar[dict[str, Any]] = _WINDOW_EXAMPLE

    limit: int | None
    remaining: int | None
    reset: int | None


class StartLimit(msgspec.Struct):
    """How many executions may start within a minute."""

    example: ClassVar[dict[str, Any]] = {"limit": 30, "remaining": 28}

    limit: int
    remaining: int


class ConcurrencyLimits(msgspec.Struct):
    """How many executions may run at the same time."""

    example: ClassVar[dict[str, Any]] = {"limit": 5, "running": 1, "remaining": 4}

    limit: int
    running: int
    remaining: int


class ExecutionLimits(msgspec.Struct):
    example: ClassVar[dict[str, Any]] = {
        "per_minute": StartLimit.example,
        "concurrent": ConcurrencyLimits.example,
    }

    per_minute: StartLimit
    concurrent: ConcurrencyLimits


class UsageLimits(msgspec.Struct):
    """The limits of the plan, and what remains of them. `minute` counts units: a read costs 1, a
    write 2, an execution 5, a chat 10; during a burst, its limit is that of the burst.
    """

    example: ClassVar[dict[str, Any]] = {
        "plan": "pro",
        "minute": _WINDOW_EXAMPLE,
        "hour": {"limit": 10000, "remaining": 9569, "reset": 1767272400},
        "day": {"limit": 100000, "remaining": 99569, "reset": 1767355200},
        "workflow_executions": ExecutionLimits.example,
        "storage": StorageLimit.example,
    }

    plan: str
    minute: WindowLimit
    hour: WindowLimit
    day: WindowLimit
    workflow_executions: ExecutionLimits
    storage: StorageLimit


class UsageReport(msgspec.Struct, kw_only=True):
    example: ClassVar[dict[str, Any]] = {
        "period": "30d",
        "since": "2025-12-03T00:00:00Z",
        "totals": UsageSums.example,
        "by_day": [DayUsage.example],
        "by_agent": [AgentUsage.example],
        "by_model": [ModelUsage.example],
        "limits": UsageLimits.example,
    }

    period: UsagePeriod
    # None for all time.
    since: datetime | None
    totals: UsageSums
    by_day: list[DayUsage]
    by_agent: list[AgentUsage]
    by_model: list[ModelUsage]
    limits: UsageLimits


class CountedLimit(msgspec.Struct):
    """`limit` and `remaining` are null without a limit."""

    example: ClassVar[dict[str, Any]] = {"limit": 1000, "used": 120, "remaining": 880}

    limit: int | None
    used: int
    remaining: int | None


class VisitorLimits(msgspec.Struct):
    """What visitors of a kind may send together, and what remains. They do not use up the limits
    of users and service keys.
    """

    example: ClassVar[dict[str, Any]] = {
        "minute": _WINDOW_EXAMPLE,
        "hour": {"limit": 10000, "remaining": 9569, "reset": 1767272400},
        "day": {"limit": 100000, "remaining": 99569, "reset": 1767355200},
    }

    minute: WindowLimit
    hour: WindowLimit
    day: WindowLimit


class VisitorKinds(msgspec.Struct):
    """Visitors of embedded chats and of forms, and callers of incoming webhooks."""

    example: ClassVar[dict[str, Any]] = {
        "embed": VisitorLimits.example,
        "forms": VisitorLimits.example,
        "incoming": VisitorLimits.example,
    }

    embed: VisitorLimits
    forms: VisitorLimits
    incoming: VisitorLimits


class EmbedKeyBudget(msgspec.Struct):
    """What remains of the daily budget of an embed key."""

    example: ClassVar[dict[str, Any]] = {
        "embed_key_id": "emk_01k9x3m7e8c0v2q4r6t8w0y2a4",
        "name": "Shop",
        "agent_id": "agt_01k9x3m7e8c0v2q4r6t8w0y2a4",
        "messages": CountedLimit.example,
        "tokens": {"limit": None, "used": 51200, "remaining": None},
    }

    embed_key_id: str
    name: str
    agent_id: str
    messages: CountedLimit
    tokens: CountedLimit


class LimitsReport(UsageLimits, kw_only=True):
    """All limits of the tenant, and what remains of them now. `embed_keys` has those that have a
    daily budget, at most 100, the most used first; budgets begin anew at `budgets_reset`,
    midnight in UTC.
    """

    example: ClassVar[dict[str, Any]] = {
        **UsageLimits.example,
        "visitors": VisitorKinds.example,
        "data_rows": CountedLimit.example,
        "embed_keys": [EmbedKeyBudget.example],
        "budgets_reset": "2026-01-02T00:00:00Z",
    }

    visitors: VisitorKinds
    data_rows: CountedLimit
    embed_keys: list[EmbedKeyBudget]
    budgets_reset: datetime
