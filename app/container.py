"""Builds the services of a process, with the shared objects of each area."""

from app.areas import AREAS
from app.crypto import key_file
from app.domain.area import Areas
from app.jobs.batches import Batches
from app.jobs.threads import TenantThreads
from app.jobs.work import Doorbell
from app.kit.concurrency import ConcurrencyLimit
from app.kit.csv_export import ExportLimit
from app.kit.files import Files
from app.kit.redis import connect
from app.net.egress import Egress, Guard
from app.observe.readiness import Readiness
from app.sandbox.box import Sandbox
from app.security.sessions import Grants, SessionCache
from app.security.tokens import Tokens
from app.services import Services
from app.settings import Settings
from db.session import Database


def build(settings: Settings, areas: Areas = AREAS) -> Services:
    """Opens no connection, so that it works before Postgres and Redis run."""
    keyring = key_file.load(settings)
    db = Database(settings.sqlalchemy_url, pool_size=settings.pool_size)
    redis = connect(settings.redis_address)
    doorbell = Doorbell(settings.redis_address, areas.work_kinds)
    db.ring = doorbell.wake
    services = Services(
        settings=settings,
        db=db,
        redis=redis,
        keyring=keyring,
        readiness=Readiness(db, keyring),
        tokens=Tokens(keyring),
        grants=Grants(db),
        session_cache=SessionCache(redis),
        doorbell=doorbell,
        egress=Egress(Guard(settings.egress_allow)),
        files=Files.at(settings.files_uri, settings.data_dir),
        batches=Batches(),
        sandbox=Sandbox(settings),
        outbound_limit=ConcurrencyLimit(),
    )
    services.add(areas)
    services.add(TenantThreads())
    services.add(ExportLimit())
    for area in areas:
        for shared in area.shared(services):
            services.add(shared)
    return services
