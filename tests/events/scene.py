"""Where events are brought about: what a deed needs, and the steps that several share."""

import re
from email import message_from_bytes, policy
from typing import Any

import httpx
import msgspec
import pyotp
from sqlalchemy import select

from app.domain.mail import service as mail
from app.kit import clock
from app.services import Services
from db.models import MailMessage
from db.session import ALL_TENANTS
from tests.model_server import ModelServer
from tests.talk import Talker, talker
from tests.webhooks.receiver import Receiver
from tests.world import Client, World


class Scene(msgspec.Struct):
    world: World
    services: Services
    models: ModelServer
    receiver: Receiver
    admin: Client

    @property
    def tenant_id(self) -> str:
        return self.admin.tenant_id

    async def colleague(self, role: str = "viewer") -> Client:
        return await self.world.user(role, self.tenant_id)

    async def talker(self) -> Talker:
        return await talker(self.world, self.models, client=self.admin)

    async def mailed_token(self, email: str, page: str) -> str:
        """Of the last link to this page, whether or not a worker has sent the mail already."""
        wanted = select(MailMessage).where(MailMessage.recipient == email).order_by(MailMessage.id)
        async with self.services.db.tx(ALL_TENANTS, autocommit=True) as tx:
            found = list(await (await tx.session()).scalars(wanted))
        texts = "\n".join(self._text(one) for one in found)
        token: str = re.findall(rf"/{page}\?token=([\w-]+)", texts)[-1]
        return token

    def _text(self, message: MailMessage) -> str:
        if message.body is not None:
            place = mail.seal_context(message.tenant_id, message.id)
            return self.services.keyring.open(message.body, place).decode()
        sent = mail.mailbox(self.services.settings) / f"{message.id}.eml"
        return str(message_from_bytes(sent.read_bytes(), policy=policy.default).get_content())


async def done(answer: httpx.Response, status: int = 200) -> Any:
    assert answer.status_code == status, answer.text
    return answer.json() if answer.content else None


async def made(caller: Client, path: str, body: dict[str, Any], status: int = 201) -> Any:
    return await done(await caller.post(path, body), status)


async def add_device(client: Client) -> list[str]:
    """Another authenticator is confirmed; gives its recovery codes."""
    setup = await made(client, "/api/v1/mfa/setup", {}, 200)
    code = pyotp.TOTP(setup["secret"]).at(int(clock.epoch()))
    await made(client, "/api/v1/mfa/enable", {"code": code}, 200)
    codes: list[str] = setup["recovery_codes"]
    return codes
