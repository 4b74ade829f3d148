"""What an emitter needs, and steps that several emitters share."""

import re

import msgspec
import pyotp
from sqlalchemy import select

from app.domain.platform.mail import service as mail
from app.kit import clock
from app.services import Services
from db.models import MailMessage
from db.session import ALL_TENANTS
from tests.messaging.deliveries.receiver import Receiver
from tests.model_server import ModelServer
from tests.platform.events.responses import post_json
from tests.platform.mail.messages import read_part
from tests.scripted_agents import Talker, talker
from tests.world import Client, World


class EmitterContext(msgspec.Struct):
    """An emitter may replace `admin` by a user of the tenant whose log gets the event."""

    world: World
    services: Services
    models: ModelServer
    receiver: Receiver
    admin: Client

    @property
    def tenant_id(self) -> str:
        return self.admin.tenant_id

    async def create_colleague(self, role: str = "viewer") -> Client:
        return await self.world.user(role, self.tenant_id)

    async def create_talker(self) -> Talker:
        return await talker(self.world, self.models, client=self.admin)

    async def find_mailed_token(self, email: str, page: str) -> str:
        """Returns the token of the last link to this page, also where the mail is still queued."""
        statement = (
            select(MailMessage).where(MailMessage.recipient == email).order_by(MailMessage.id)
        )
        async with self.services.db.tx(ALL_TENANTS, autocommit=True) as tx:
            messages = list(await (await tx.session()).scalars(statement))
        texts = "\n".join(self._read_text(message) for message in messages)
        token: str = re.findall(rf"/{page}\?token=([\w-]+)", texts)[-1]
        return token

    def _read_text(self, message: MailMessage) -> str:
        if message.body is not None:
            return mail.open_content(self.services.keyring, message).text
        path = mail.mailbox(self.services.settings) / f"{message.id}.eml"
        return read_part(path.read_bytes())


async def add_mfa_device(client: Client) -> list[str]:
    """Confirms another authenticator; returns its recovery codes."""
    setup = await post_json(client, "/api/v1/mfa/setup", {}, 200)
    code = pyotp.TOTP(setup["secret"]).at(int(clock.epoch()))
    await post_json(client, "/api/v1/mfa/enable", {"code": code}, 200)
    codes: list[str] = setup["recovery_codes"]
    return codes
