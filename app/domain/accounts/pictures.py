"""Files of users' profile pictures."""

from app.domain.files import service as files
from app.services import Services
from db.session import Tx

PICTURE_FOLDER = "avatars/"


async def delete_picture(tx: Tx, services: Services, tenant_id: str, key: str | None) -> None:
    """Deletes the file after the commit, when no row refers to it any more."""
    if key is not None:
        await files.release(tx, services, tenant_id, [PICTURE_FOLDER + key])
