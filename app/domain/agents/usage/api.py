"""What other areas may call."""

from app.domain.agents.usage.count_queries import count_sql
from app.domain.agents.usage.queries import add as add_usage
from app.domain.agents.usage.queries import insert_sql
from app.domain.agents.usage.request_counter import RequestCounter
from app.domain.agents.usage.service import ModelCall, add_call, get_agent_stats
