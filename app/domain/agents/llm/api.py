"""What other areas may call."""

from app.domain.agents.llm.gateway import LOCAL_ANSWER_TOKENS, LOCAL_MODEL, Models
from app.domain.agents.llm.keys import load_search_key, load_target
from app.domain.agents.llm.keys import seal_context as key_seal_context
from app.domain.agents.llm.openai_requests import QUOTATION_MARK
from app.domain.agents.llm.prices import cost_usd, speech_cost_usd, transcription_cost_usd
from app.domain.agents.llm.protocol import (
    Function,
    Message,
    ModelRequest,
    QueueLimits,
    QueuePosition,
    Role,
    Target,
    Text,
    ToolCall,
    UsedTokens,
    estimate_tokens,
    upper_bound_tokens,
)
from app.domain.agents.llm.providers import LOCAL, provider_of
