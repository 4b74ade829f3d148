"""What other areas may call."""

from .gateway import LOCAL_ANSWER_TOKENS, LOCAL_MODEL, LOCAL_TEMPERATURE, Models
from .keys import load_search_key, load_target, require_offered, require_reranker
from .keys import seal_context as key_seal_context
from .openai_requests import QUOTATION_MARK
from .prices import (
    charges_speech_by_second,
    cost_usd,
    estimate_speech_tokens,
    rerank_cost_usd,
    speech_cost_usd,
    transcription_cost_usd,
)
from .protocol import (
    Accepted,
    EmbeddingInputs,
    Finished,
    FinishReason,
    Function,
    Image,
    Message,
    ModelOptions,
    ModelRequest,
    NamedFunction,
    QueueLimits,
    QueuePosition,
    Ranking,
    Refusal,
    RerankRequest,
    Role,
    SpeechOptions,
    Target,
    Text,
    ToolCall,
    ToolChoice,
    TranscriptionOptions,
    UsedTokens,
    Waiting,
    estimate_tokens,
    upper_bound_tokens,
)
from .providers import LOCAL, provider_of
