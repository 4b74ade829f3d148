"""What other areas may call."""

from app.domain.conversations.speech import espeak, moonshine

__all__ = [
    "espeak",
    "moonshine",
]
