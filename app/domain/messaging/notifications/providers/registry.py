"""All providers. A new one is a file beside this one and a line here."""

from typing import Final

from app.domain.messaging.notifications.providers.in_app import InApp
from app.domain.messaging.notifications.providers.mailgun import Mailgun
from app.domain.messaging.notifications.providers.protocol import Provider
from app.domain.messaging.notifications.providers.resend import Resend
from app.domain.messaging.notifications.providers.sendgrid import SendGrid
from app.domain.messaging.notifications.providers.slack import SlackBot, SlackWebhook
from app.domain.messaging.notifications.providers.smtp import Smtp
from app.domain.messaging.notifications.providers.twilio import Twilio
from app.domain.messaging.notifications.providers.vonage import Vonage
from app.domain.messaging.notifications.providers.webhook import Webhook

_ALL: tuple[Provider, ...] = (
    Smtp(),
    SendGrid(),
    Mailgun(),
    Resend(),
    SlackWebhook(),
    SlackBot(),
    Webhook(),
    Twilio(),
    Vonage(),
    InApp(),
)
PROVIDERS: Final[dict[str, Provider]] = {provider.id: provider for provider in _ALL}
