"""Files of users' profile pictures."""

from app.domain.platform.files import api as files
from app.services import Services
from db.session import Tx

# Where pictures were stored before the sweep of files deleted those without a row.
_OLD_FOLDER = "avatars/"


def list_picture_paths(tenant_id: str, key: str) -> list[str]:
    """Returns where a picture may be in the store. New ones have the first path."""
    return [f"{files.FOLDER}{tenant_id}/avatar_{key}", _OLD_FOLDER + key]


async def delete_picture(tx: Tx, services: Services, tenant_id: str, key: str | None) -> None:
    """Deletes the file after the commit, when no row refers to it any more."""
    if key is not None:
        await files.release(tx, services, tenant_id, list_picture_paths(tenant_id, key))
