"""What other areas may call."""

from .gateway import LOCAL_ANSWER_TOKENS, LOCAL_MODEL, LOCAL_TEMPERATURE, Models
from .keys import load_search_key, load_target, require_offered
from .keys import seal_context as key_seal_context
from .openai_requests import QUOTATION_MARK
from .prices import cost_usd, speech_cost_usd, transcription_cost_usd
from .protocol import (
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
    Waiting,
    estimate_tokens,
    upper_bound_tokens,
)
from .providers import LOCAL, provider_of
