"""All providers. A new one is a file beside this one and a line here."""

from typing import Final

from .in_app import InApp
from .mailgun import Mailgun
from .protocol import Provider
from .resend import Resend
from .sendgrid import SendGrid
from .slack import SlackBot, SlackWebhook
from .smtp import Smtp
from .twilio import Twilio
from .vonage import Vonage
from .webhook import Webhook

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
