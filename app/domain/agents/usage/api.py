"""What other areas may call."""

from .count_queries import count_sql
from .queries import add as add_usage
from .queries import insert_sql
from .request_counter import RequestCounter
from .service import ModelCall, add_call, get_agent_stats
