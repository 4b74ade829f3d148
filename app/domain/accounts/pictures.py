"""The files of users' pictures."""

from functools import partial

from app.services import Services
from db.session import Tx

FOLDER = "avatars/"


def delete_picture(tx: Tx, services: Services, key: str | None) -> None:
    """Deletes the file after the commit, when no row names it any more."""
    if key is not None:
        tx.after_commit.append(partial(services.files.delete, FOLDER + key))
