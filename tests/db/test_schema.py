"""The revisions of this release, and the comparison with that of a database."""

from pathlib import Path

import pytest
from alembic.script import ScriptDirectory

from app.observe.readiness import Readiness
from app.services import Services
from app.settings import Settings
from db import migrate, schema
from db.session import ALL_TENANTS, Database
from tests.later_migrations import add_migration
from tests.stores import Stores

NEWEST = schema.newest_revision()


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    """A revision after the newest one, which the release has in this test."""
    add_migration(monkeypatch, tmp_path, "later", "SELECT 1")
    return "later"


def test_the_revisions_are_those_of_the_migrations() -> None:
    engine = migrate.create_engine("postgresql://127.0.0.1/parley").sync_engine
    script = ScriptDirectory.from_config(migrate.commands(engine).config)
    assert script.get_current_head() == NEWEST
    assert {item.revision for item in script.walk_revisions()} == schema.known_revisions()


def test_a_database_fits_is_behind_or_is_ahead(later: str, subtests: pytest.Subtests) -> None:
    for revision, fit, advice in [
        (later, "equal", ""),
        (None, "behind", "parley migrate"),
        (NEWEST, "behind", "parley migrate"),
        ("9999", "ahead", "upgrade this process"),
    ]:
        with subtests.test(revision=revision, fit=fit, advice=advice):
            assert schema.compare(revision) == fit
            text = schema.describe(revision)
            assert (revision or "none") in text
            assert advice in text


async def _set_revision(settings: Settings, revision: str) -> None:
    db = Database(settings.sqlalchemy_url, pool_size=1)
    async with db.tx(ALL_TENANTS) as tx:
        await (await tx.raw()).execute("UPDATE alembic_version SET version_num = $1", revision)
    await db.close()


async def test_a_process_is_ready_unless_the_database_is_behind(
    services: Services, stores: Stores, later: str, subtests: pytest.Subtests
) -> None:
    cases: list[tuple[str, str | None]] = [
        (later, None),
        ("9999", None),
        (NEWEST, f"schema {NEWEST}, this release needs {later}"),
    ]
    for revision, problem in cases:
        with subtests.test(revision=revision, problem=problem):
            settings = await stores.create_database()
            await _set_revision(settings, revision)
            db = Database(settings.sqlalchemy_url, pool_size=1)
            readiness = Readiness(db, services.keyring)
            await readiness.check()
            await db.close()
            actual = readiness.problem
            assert actual is None if problem is None else problem in (actual or "")


async def test_an_empty_database_has_no_revision(stores: Stores, services: Services) -> None:
    db = Database(stores.postgres.url("postgres").replace("://", "+asyncpg://"), pool_size=1)
    readiness = Readiness(db, services.keyring)
    await readiness.check()
    await db.close()
    assert "schema none" in (readiness.problem or "")
