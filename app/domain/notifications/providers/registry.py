"""All providers. A new one is a file beside this one and a line here."""

from typing import Final

from app.domain.notifications.providers.protocol import Provider
from app.domain.notifications.providers.sendgrid import SendGrid

PROVIDERS: Final[dict[str, Provider]] = {provider.id: provider for provider in (SendGrid(),)}
