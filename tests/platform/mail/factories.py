import msgspec

from app.domain.platform.mail import service as mail
from app.domain.platform.mail.jobs import send_mail
from app.domain.platform.mail.rendering import MailContent
from app.services import Services
from app.settings import Settings
from db.session import Tx
from tests.database import Row, fetch_rows
from workers.runner import Runner

CONTENT = MailContent("Hello", "token=hunter2\n", "<p>token=hunter2</p>\n")


async def queue_mail(
    tx: Tx, services: Services, tenant_id: str, recipient: str = "ada@example.com"
) -> str:
    """Returns the id of a queued mail with a secret in its text."""
    return await mail.queue(
        tx, services.keyring, tenant_id=tenant_id, recipient=recipient, content=CONTENT
    )


def create_runner(services: Services, settings: Settings) -> Runner:
    """Returns a runner that sends mails as these settings say."""
    with_settings = msgspec.structs.replace(services, settings=settings)
    return Runner(with_settings, {"mail.send": send_mail})


async def read_work(services: Services, mail_id: str) -> Row:
    (row,) = await fetch_rows(services, "SELECT * FROM work WHERE ref_id = $1", mail_id)
    return row
