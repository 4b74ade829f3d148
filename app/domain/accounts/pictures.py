"""Files of users' profile pictures."""

from functools import partial

from app.services import Services
from db.session import Tx

PICTURE_FOLDER = "avatars/"


def delete_picture(tx: Tx, services: Services, key: str | None) -> None:
    """Deletes the file after the commit, when no row refers to it any more."""
    if key is not None:
        tx.after_commit.append(partial(services.files.delete, PICTURE_FOLDER + key))
