"""What other areas may call."""

from app.domain.messaging.webhooks.service import find
