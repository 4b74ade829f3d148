"""Compares the schema of the database with the one of this release.

Reads the revisions from the files of the migrations: importing Alembic would delay every start.
"""

import re
from functools import cache
from pathlib import Path
from typing import Final, Literal

import asyncpg

VERSION_TABLE: Final = "alembic_version"
MIGRATIONS: Final = Path(__file__).parent / "migrations"
_READ_REVISION = f"SELECT version_num FROM {VERSION_TABLE}"
_REVISION = re.compile(r"^revision = ['\"](\w+)['\"]$", re.MULTILINE)
_PREVIOUS = re.compile(r"^down_revision = ['\"](\w+)['\"]$", re.MULTILINE)

Fit = Literal["equal", "behind", "ahead"]


class SchemaBehind(RuntimeError):
    """The database has an older schema than this release needs. The message says what to do."""


class MigrationBlocked(RuntimeError):
    """A migration could not lock its tables in time. The message is one line for the operator."""


def known_revisions() -> frozenset[str]:
    known, _newest = _read_revisions(MIGRATIONS)
    return known


def newest_revision() -> str:
    """Returns the revision that this release needs."""
    _known, newest = _read_revisions(MIGRATIONS)
    return newest


@cache
def _read_revisions(folder: Path) -> tuple[frozenset[str], str]:
    """Returns all revisions of a folder of migrations, and the newest of them."""
    paths = (folder / "versions").glob("*.py")
    sources = "\n".join(path.read_text(encoding="utf-8") for path in paths)
    known = frozenset(_REVISION.findall(sources))
    (newest,) = known - set(_PREVIOUS.findall(sources))
    return known, newest


async def read_revision(raw: asyncpg.Connection) -> str | None:
    """Returns the revision of the database; None when it has no schema. Call it outside of a
    transaction, which the missing table would abort.
    """
    try:
        revision: str | None = await raw.fetchval(_READ_REVISION)
    except asyncpg.UndefinedTableError:
        return None
    return revision


def compare(revision: str | None) -> Fit:
    if revision == newest_revision():
        return "equal"
    # Only a newer release knows a revision that this one does not.
    return "behind" if revision is None or revision in known_revisions() else "ahead"


def describe(revision: str | None) -> str:
    """Returns the difference between database and release, and what to do about it."""
    needed = newest_revision()
    match compare(revision):
        case "equal":
            return f"schema {revision}"
        case "behind":
            return f"schema {revision or 'none'}, this release needs {needed}: run `parley migrate`"
        case "ahead":
            return (
                f"schema {revision}, newer than {needed} of this release: "
                "upgrade this process to the release that migrated the database"
            )
