from typing import Any, ClassVar, Literal

import msgspec

Period = Literal["24h", "7d", "30d", "all_time"]


class AgentStats(msgspec.Struct):
    example: ClassVar[dict[str, Any]] = {
        "agent_id": "agt_01k9x3m7e8c0v2q4r6t8w0y2a4",
        "total_conversations": 12,
        "total_messages": 48,
        "total_tokens_used": 9120,
        "avg_response_time_ms": 812.5,
        "period": "all_time",
    }

    agent_id: str
    total_conversations: int
    total_messages: int
    total_tokens_used: int
    avg_response_time_ms: float
    period: Period
