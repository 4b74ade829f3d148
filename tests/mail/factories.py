from app.domain.mail import service as mail
from app.services import Services
from db.session import Tx


async def queue_mail(tx: Tx, services: Services, tenant_id: str) -> str:
    """Returns the id of a queued mail with a secret in its text."""
    return await mail.queue(
        tx,
        services.keyring,
        tenant_id=tenant_id,
        recipient="ada@example.com",
        subject="Hello",
        text="token=hunter2",
    )
