"""What other areas may call."""

from app.domain.conversations.speech import espeak, moonshine
