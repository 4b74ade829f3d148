"""All providers. A new one is a file beside this one and a line here."""

from typing import Final

from app.domain.notifications.providers.in_app import InApp
from app.domain.notifications.providers.mailgun import Mailgun
from app.domain.notifications.providers.protocol import Provider
from app.domain.notifications.providers.resend import Resend
from app.domain.notifications.providers.sendgrid import SendGrid
from app.domain.notifications.providers.slack_bot import SlackBot
from app.domain.notifications.providers.slack_webhook import SlackWebhook
from app.domain.notifications.providers.smtp import Smtp
from app.domain.notifications.providers.twilio import Twilio
from app.domain.notifications.providers.vonage import Vonage
from app.domain.notifications.providers.webhook import Webhook

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
