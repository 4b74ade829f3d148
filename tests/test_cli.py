"""The command line."""

import asyncio
import socket
import subprocess
import tomllib
from pathlib import Path

import asyncpg
import httpx
import msgspec
import psutil
import pytest
from click.testing import CliRunner
from sqlalchemy import select

from app import bootstrap
from app.cli import main
from app.crypto.keyring import Keyring, SealContext
from app.main import create_app
from app.services import Services
from db.models import IdempotencyKey, User
from db.session import ALL_TENANTS, Database
from tests.observe.formats import check_openmetrics, check_prometheus
from tests.ports import free_port
from tests.preloaded import PreloadedProcess
from tests.processes import ROOT, Processes, run_parley
from tests.server import Server
from tests.stores import Stores, wait_for
from tests.world import Client, World


def test_every_command_has_help(subtests: pytest.Subtests) -> None:
    for command in [
        "up",
        "serve",
        "worker",
        "migrate",
        "admin",
        "tenants",
        "keys",
        "mail",
        "doctor",
        "model",
    ]:
        with subtests.test(command=command):
            result = CliRunner().invoke(main, [command, "--help"])
            assert result.exit_code == 0
            assert "Usage" in result.output


def test_the_version_is_that_of_the_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert CliRunner().invoke(main, ["--version"]).output == f"parley {project['version']}\n"


def test_migrating_again_changes_nothing(services: Services, stores: Stores) -> None:
    result = run_parley(stores.settings, "migrate")
    assert result.returncode == 0, result.stderr
    assert "up to date" in result.stdout


def _create_admin(stores: Stores) -> subprocess.CompletedProcess[str]:
    command = ("admin", "create", "--email", "root@example.com")
    return run_parley(stores.settings, *command, stdin="Good7Password\n")


async def test_an_admin_can_be_created(services: Services, stores: Stores) -> None:
    result = await asyncio.to_thread(_create_admin, stores)
    assert result.returncode == 0, result.stderr
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        statement = select(User.role).where(User.email == "root@example.com")
        assert await (await tx.session()).scalar(statement) == "super_admin"
    again = await asyncio.to_thread(_create_admin, stores)
    assert again.returncode == 1
    assert "already has an account" in again.stderr


def test_a_weak_admin_password_is_refused(services: Services, stores: Stores) -> None:
    result = run_parley(
        stores.settings, "admin", "create", "--email", "a@example.com", stdin="short\n"
    )
    assert result.returncode == 1
    assert "at least 8 characters" in result.stderr


def test_an_admin_without_an_address_is_refused(services: Services, stores: Stores) -> None:
    result = run_parley(
        stores.settings, "admin", "create", "--email", "root", stdin="Good7Password\n"
    )
    assert result.returncode == 1
    assert "root is not an e-mail address" in result.stderr


async def test_a_forgotten_password_is_replaced(
    developer: Client, anonymous: Client, stores: Stores
) -> None:
    command = ("users", "reset-password", developer.email)
    result = await asyncio.to_thread(
        run_parley, stores.settings, *command, stdin="Other7Password\n"
    )
    assert result.returncode == 0, result.stderr
    assert (await developer.get("/auth/me")).status_code == 401
    body = {"email": developer.email, "password": "Other7Password"}
    assert (await anonymous.post("/auth/login", body)).status_code == 200


def test_the_password_of_nobody_is_not_replaced(services: Services, stores: Stores) -> None:
    command = ("users", "reset-password", "nobody@example.com")
    result = run_parley(stores.settings, *command, stdin="Other7Password\n")
    assert result.returncode == 1
    assert "nobody has an account with nobody@example.com" in result.stderr


async def test_tenants_are_listed(world: World, stores: Stores) -> None:
    tenant = await world.tenant("pro")
    assert tenant in run_parley(stores.settings, "tenants").stdout


def test_an_unknown_queue_is_one_clear_line(stores: Stores) -> None:
    result = run_parley(stores.settings, "worker", "--queues", "chat,nope")
    assert result.returncode == 1
    assert result.stderr.count("\n") == 1
    assert "nope" in result.stderr


def test_the_doctor_names_what_is_wrong_and_what_to_do(services: Services, stores: Stores) -> None:
    # A Redis database without heartbeats of other tests' workers.
    redis_url = f"{stores.settings.redis_url}?db=5"
    result = run_parley(msgspec.structs.replace(stores.settings, redis_url=redis_url), "doctor")
    assert result.returncode == 1
    lines = result.stdout.splitlines()
    assert any(line.startswith("ok   postgres") for line in lines)
    assert any(line.startswith("ok   redis") for line in lines)
    bad = next(number for number, line in enumerate(lines) if line.startswith("BAD  workers"))
    assert "parley worker" in lines[bad + 1]


async def test_keys_can_be_verified(stores: Stores) -> None:
    """In a database of its own, because other tests store values that cannot be decrypted."""
    settings = await stores.create_database()
    app = create_app(settings)
    await bootstrap.prepare(app.state.services.db, app.state.services.keyring, "enterprise")
    admin = await World(app).user("tenant_admin")
    body = {"name": "One", "type": "bearer_token", "secrets": {"token": "tkn-0123456789"}}
    assert (await admin.post("/v1/credentials", body)).status_code == 201
    await app.state.services.close()
    result = await asyncio.to_thread(run_parley, settings, "keys", "rotate", "--verify")
    assert result.returncode == 0, result.stderr
    assert "cannot open" not in result.stdout
    assert "credentials.secrets" in result.stdout


async def test_verification_fails_when_a_value_cannot_be_opened(stores: Stores) -> None:
    settings = await stores.create_database()
    connection = await asyncpg.connect(settings.database_url)
    context = SealContext.of(IdempotencyKey.body, "", "lost")
    await connection.execute(
        "INSERT INTO idempotency_keys (id, fingerprint, body) VALUES ('lost', '', $1)",
        Keyring.parse(Keyring.generate("test")).seal(b"text", context),
    )
    await connection.close()
    result = await asyncio.to_thread(run_parley, settings, "keys", "rotate", "--verify")
    assert result.returncode == 1
    assert "cannot open" in result.stdout


def test_an_unreachable_database_is_one_clear_line(
    stores: Stores, tmp_path: Path, subtests: pytest.Subtests
) -> None:
    for url, reason in (
        (f"postgresql://parley@/parley?host={tmp_path}", "No such file"),
        (stores.postgres.url("nowhere"), 'database "nowhere" does not exist'),
        (stores.postgres.url().replace("parley@", "nobody@"), 'role "nobody" does not exist'),
    ):
        settings = msgspec.structs.replace(stores.settings, database_url=url)
        for command in ("tenants", "migrate"):
            with subtests.test(url=url, command=command):
                result = run_parley(settings, command)
                assert result.returncode == 1
                assert reason in result.stderr
                assert "parley doctor" in result.stderr
                assert result.stderr.count("\n") == 1


# Web processes read the standard input of the process that starts them.
_SERVE = """
import os, runpy, sys
os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
sys.stdin = os.fdopen(0)
runpy.run_module("app.cli", run_name="__main__", alter_sys=True)
"""


class TwoWebProcesses(Server):
    """Both import everything, because the metrics of several processes depend on their start."""

    def _start(self, env: dict[str, str]) -> PreloadedProcess:
        return PreloadedProcess("-c", _SERVE, "serve", "--workers", "2", env=env)

    def wait(self) -> None:
        """Without the requests of `Server`, which cost more than the start."""
        port = self.settings.port
        wait_for(lambda: _accepts("127.0.0.1", port), 60, "the web tier")


def _list_counting(parent: int) -> set[str]:
    """Returns the names of the counters' files of the processes below one, a file for each."""
    folders = {
        process.environ().get("PROMETHEUS_MULTIPROC_DIR", "")
        for process in psutil.Process(parent).children()
    }
    return {path.name for folder in folders if folder for path in Path(folder).glob("counter_*.db")}


def _read_metrics(client: httpx.Client, address: str) -> str:
    try:
        return client.get(f"http://{address}/metrics").text
    except httpx.TransportError:
        return ""


def _check_formats(address: str) -> None:
    url = f"http://{address}/metrics"
    check_prometheus(httpx.get(url))
    check_openmetrics(httpx.get(url, headers={"accept": "application/openmetrics-text"}))


def test_several_web_processes_share_a_port_and_their_metrics(
    services: Services, stores: Stores
) -> None:
    address = f"127.0.0.1:{free_port()}"
    server = TwoWebProcesses(msgspec.structs.replace(stores.settings, metrics_address=address))
    try:
        server.wait()
        wait_for(lambda: len(_list_counting(server.pid)) == 2, 60, "the counters of both")
        with httpx.Client(timeout=60) as client:
            for _ in range(10):
                client.get(f"{server.url}/auth/me", headers={"connection": "close"})
            sample = 'parley_requests_total{method="GET",route="/auth/me",status="4xx"} 10.0'
            wait_for(lambda: sample in _read_metrics(client, address), what="the metrics of both")
            _check_formats(address)
    finally:
        server.close()


@pytest.mark.parametrize(
    ("options", "address"), [((), "127.0.0.1"), (("--metrics-host", "0.0.0.0"), "0.0.0.0")]
)
def test_a_worker_serves_metrics_on_loopback_unless_an_option_says_otherwise(
    services: Services, stores: Stores, options: tuple[str, ...], address: str
) -> None:
    processes, port = Processes(stores.settings), free_port()
    command = ("-m", "app.cli", "worker", "--queues", "speech", "--metrics-port", str(port))
    try:
        worker = psutil.Process(processes.python(*command, *options).pid)
        wait_for(lambda: _accepts("127.0.0.1", port), what="the metrics")
        _check_formats(f"127.0.0.1:{port}")
        listeners = [item.laddr for item in worker.net_connections() if item.status == "LISTEN"]
        assert [item.ip for item in listeners if item.port == port] == [address]
    finally:
        processes.close()


def _accepts(address: str, port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((address, port)) == 0


async def test_several_processes_create_one_first_admin(stores: Stores) -> None:
    settings = await stores.create_database()
    db = Database(settings.sqlalchemy_url)
    admins = await asyncio.gather(
        *(
            bootstrap.ensure_admin(db, f"a{n}@example.com", "Good7Password", "free")
            for n in range(4)
        )
    )
    await db.close()
    assert len([admin for admin in admins if admin is not None]) == 1
