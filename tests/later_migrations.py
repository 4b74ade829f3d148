"""Migrations after those of this release, for tests of a database that is behind."""

import shutil
from pathlib import Path

import pytest

from db import schema

_SOURCE = '''"""A migration of a test."""

from alembic import op

revision = "{revision}"
down_revision = "{previous}"


def upgrade() -> None:
    op.execute("""{statement}""")
'''


def add_migration(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, revision: str, statement: str
) -> None:
    """Until the end of the test, this process has one more migration, which is the newest."""
    previous, folder = schema.newest_revision(), tmp_path / revision
    shutil.copytree(schema.MIGRATIONS, folder, ignore=shutil.ignore_patterns("__pycache__"))
    source = _SOURCE.format(revision=revision, previous=previous, statement=statement)
    (folder / "versions" / f"{revision}.py").write_text(source)
    monkeypatch.setattr(schema, "MIGRATIONS", folder)
