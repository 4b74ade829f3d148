"""What the model sees besides the conversation: the passages of the agent's documents."""

from app.domain.agents.definition.api import AgentRuntime
from app.domain.agents.knowledge import api as knowledge
from app.domain.agents.knowledge.api import Passages
from app.domain.conversations.chat.history import PastMessage
from app.services import Services

_MAX_TOKENS = 6000
# A question with fewer words is often about the one before it.
_MIN_WORDS = 6


async def find_passages(
    services: Services, runtime: AgentRuntime, window: int, query: str
) -> Passages | None:
    """Returns passages that take at most a third of the model's window."""
    if runtime.knowledge is None:
        return None
    max_tokens = min(_MAX_TOKENS, window // 3)
    return await knowledge.find_passages(
        services, runtime.tenant_id, runtime.knowledge, query, max_tokens
    )


def build_query(text: str, past: list[PastMessage]) -> str:
    """Returns the question; a short one together with the question before it."""
    questions = [message.content for message in past if message.role == "user"]
    if len(text.split()) >= _MIN_WORDS or not questions:
        return text
    return f"{text}\n{questions[-1]}"
