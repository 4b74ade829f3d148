"""The command line: `parley --help`."""

import asyncio
import email
import email.policy
import getpass
import os
import sys
import tempfile
import time
from typing import Any

import click

from app import __version__
from app.command_runner import load_settings, one_line_errors, run_with_services, stop
from app.kit import memory
from app.settings import Settings

_SETTINGS_HELP = "Settings are PARLEY_* environment variables; docs/configuration.md lists them."


@click.group(epilog=_SETTINGS_HELP, context_settings={"max_content_width": 100})
@click.version_option(__version__, prog_name="parley", message="%(prog)s %(version)s")
def main() -> None:
    """Parley: a self-hosted platform for AI agents."""
    memory.collect_rarely()
    _ensure_user_name()


def _ensure_user_name() -> None:
    """Some libraries read the user's name on import; a user of a container often has none."""
    try:
        getpass.getuser()
    except (KeyError, OSError):
        os.environ["LOGNAME"] = "parley"


@main.command()
def up() -> None:
    """Run everything on this machine: Postgres, Redis, web tier, worker, local model.

    Parts that a setting points elsewhere (PARLEY_DATABASE_URL, PARLEY_REDIS_URL) are not started.
    """
    from app.local.up import Up, terminal_report

    settings = load_settings(default_plan="enterprise", demo=True)
    with one_line_errors():
        asyncio.run(Up(settings, terminal_report(time.monotonic())).run())


async def _check_keys(settings: Settings) -> None:
    """Raises KeyProblem. Each web process checks again, once the database can be reached."""
    from app.crypto import key_file
    from app.observe.readiness import Readiness
    from db.session import Database

    db = Database(settings.sqlalchemy_url, pool_size=1)
    try:
        await Readiness(db, key_file.load(settings)).check()
    finally:
        await db.close()


@main.command()
@click.option("--workers", default=1, show_default=True, help="How many web processes.")
def serve(workers: int) -> None:
    """Run the web tier."""
    import uvicorn

    from app.kit import logs, open_files

    settings = load_settings()
    logs.configure(settings.log_level, settings.log_format)
    open_files.raise_limit()
    with one_line_errors():
        asyncio.run(_check_keys(settings))
    if workers > 1 and not settings.metrics_dir:
        os.environ["PARLEY_METRICS_DIR"] = tempfile.mkdtemp(prefix="parley-metrics-")
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = os.environ["PARLEY_METRICS_DIR"]
    uvicorn.run(
        "app.main:asgi",
        factory=True,
        host=settings.host,
        port=settings.port,
        http="app.http.server_protocol:BoundedHttpProtocol",
        ws="none",
        workers=workers,
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=20,
    )


@main.command()
@click.option("--queues", default="", help="A comma-separated subset; all of them by default.")
@click.option("--metrics-port", type=int, help="Serve Prometheus metrics on this port.")
@click.option(
    "--metrics-host", default="127.0.0.1", show_default=True, help="The address of that port."
)
def worker(queues: str, metrics_port: int | None, metrics_host: str) -> None:
    """Run a worker process."""
    from app.jobs.work import QUEUES

    settings = load_settings()
    names = [name.strip() for name in queues.split(",") if name.strip()] or list(QUEUES)
    unknown = [name for name in names if name not in QUEUES]
    if unknown:
        stop(f"--queues: {', '.join(unknown)} unknown; there are {', '.join(QUEUES)}")
    with one_line_errors():
        # The only import of workers in app: elsewhere, workers import app.
        from workers.main import main as run_worker

        metrics = (metrics_host, metrics_port) if metrics_port is not None else None
        run_worker(settings, names, metrics_address=metrics)


@main.command()
def model() -> None:
    """Serve the local language model (`parley up` does this by itself)."""
    from app.kit import logs
    from app.local.model import serve as serve_model

    settings = load_settings()
    logs.configure(settings.log_level, settings.log_format)
    with one_line_errors():
        serve_model(settings)


@main.command()
def migrate() -> None:
    """Bring the database schema up to date and prepare the instance."""

    async def run(services: Any) -> str:
        from app import bootstrap, migration

        settings, db = services.settings, services.db
        newer = await migration.upgrade_schema(settings.sqlalchemy_url, db, services.keyring)
        if newer is not None:
            return f"nothing to do: {newer}"
        await bootstrap.prepare(db, services.keyring, settings.default_plan)
        if settings.admin_password:
            await bootstrap.ensure_admin(
                db, settings.admin_email, settings.admin_password, settings.default_plan
            )
        return "the schema is up to date"

    click.echo(run_with_services(run, any_schema=True))


@main.group()
def admin() -> None:
    """Manage super_admins."""


@admin.command("create")
@click.option("--email", "address", prompt=True, help="The e-mail to sign in with.")
def admin_create(address: str) -> None:
    """Create a super_admin. The password is read from the terminal or from standard input."""
    from app import bootstrap
    from app.kit import email_addresses

    try:
        address = email_addresses.normalize(address)
    except ValueError as error:
        stop(f"{address} is not an e-mail address: {error}")
    password = _read_password()

    async def run(services: Any) -> str | None:
        from sqlalchemy.exc import IntegrityError

        account = bootstrap.AdminAccount(address, password)
        plan = services.settings.default_plan
        try:
            return await bootstrap.create_admin(services.db, account, plan)
        except IntegrityError:
            stop(f"{address} already has an account")

    click.echo(f"created {run_with_services(run)}")


@main.group()
def users() -> None:
    """Help users who cannot sign in."""


@users.command("reset-password")
@click.argument("address")
def users_reset_password(address: str) -> None:
    """Set another password. It is read from the terminal or from standard input.

    The user's sessions end. A second factor stays: an administrator can reset it.
    """
    password = _read_password()

    async def run(services: Any) -> bool:
        from app.domain.identity.accounts.api import set_password

        return await set_password(services, address, password)

    if not run_with_services(run):
        stop(f"nobody has an account with {address}")
    click.echo(f"{address} has a new password; all sessions are ended")


def _read_password() -> str:
    from app.security import passwords

    is_terminal = sys.stdin.isatty()
    password = getpass.getpass("Password: ") if is_terminal else sys.stdin.readline().rstrip("\n")
    problem = passwords.find_problem(password)
    if problem:
        stop(f"the password {problem}")
    return password


@main.command()
def tenants() -> None:
    """List the tenants."""

    async def run(services: Any) -> list[Any]:
        from app.domain.identity.tenants import api
        from db.session import ALL_TENANTS

        async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
            return await api.list_with_user_counts(tx)

    for row in run_with_services(run):
        click.echo(f"{row['id']}  {row['plan']:<10}  {row['users']:>5} users  {row['name']}")


async def _verify_keys(services: Any) -> None:
    """Raises KeyProblem when the root keys are not those of the database."""
    from app.crypto import key_check
    from db.session import ALL_TENANTS

    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        await key_check.verify(await tx.raw(), services.keyring)


@main.group()
def keys() -> None:
    """Manage the root keys that encrypt secrets."""


@keys.command("rotate")
@click.option(
    "--verify", is_flag=True, help="Decrypt everything and count per key; change nothing."
)
def keys_rotate(*, verify: bool) -> None:
    """Encrypt everything with a new root key, in batches, while Parley runs.

    Without PARLEY_MASTER_KEYS, a new key is created first. With it, add the new key to the list of
    every process, then put it in front of the list of every process, then run this. It can be
    stopped and run again. Remove the old key when --verify lists the new one alone.
    """
    from app.crypto import rotation

    async def run(services: Any) -> rotation.Counts:
        if verify:
            await _verify_keys(services)
            return await rotation.verify(services.db, services.keyring)
        return await rotation.rotate_to_new_key(
            services.settings, services.db, services.keyring, click.echo
        )

    counts = run_with_services(run)
    for table, column_counts in counts.items():
        for kid, count in sorted(column_counts.items()):
            click.echo(f"{table:<24} {kid:<12} {count:>8}")
    if rotation.has_unopened(counts):
        stop("no configured root key opens some of the values; see the lines `cannot open`")


@main.group()
def vault() -> None:
    """Manage the credential vault."""


@vault.command("verify")
def vault_verify() -> None:
    """Check every audit chain; name the first edited or missing row of each that is broken."""

    async def run(services: Any) -> tuple[int, list[Any]]:
        from app.domain.agents.vault.api import audit

        await _verify_keys(services)
        return await audit.verify(services.db, services.keyring)

    valid, breaks = run_with_services(run)
    for broken in breaks:
        row = f" ({broken.row_id})" if broken.row_id else ""
        click.echo(f"BAD  {broken.tenant_id}  row {broken.seq}{row}: {broken.problem}")
    click.echo(f"{valid} audit rows are intact")
    sys.exit(1 if breaks else 0)


@main.group()
def tools() -> None:
    """Manage the environment of tools."""


@tools.group("packages")
def tools_packages() -> None:
    """Python packages that function and script tools may import."""


@tools_packages.command("add")
@click.argument("names", nargs=-1, required=True)
def packages_add(names: tuple[str, ...]) -> None:
    """Install packages and their dependencies for tools, as wheels only; `name==version` works."""
    from app.sandbox import packages

    home = load_settings().sandbox_home
    try:
        packages.add(home, list(names))
    except (packages.CannotInstall, OSError) as error:
        stop(str(error))
    _list_packages()


@tools_packages.command("list")
def packages_list() -> None:
    """List the packages that tools may import besides the standard library."""
    _list_packages()


@tools_packages.command("remove")
@click.argument("name")
def packages_remove(name: str) -> None:
    """Remove a package."""
    from app.sandbox import packages

    if not packages.remove(load_settings().sandbox_home, name):
        stop(f"{name} is not installed")
    _list_packages()


def _list_packages() -> None:
    from app.sandbox import packages

    installed = packages.installed(load_settings().sandbox_home)
    for name, version in installed.items():
        click.echo(f"{name:<30} {version}")
    if not installed:
        click.echo("no packages installed; tools have the standard library")


@main.command()
@click.argument("number", type=int, required=False)
def mail(number: int | None) -> None:
    """List the mails in the mailbox folder, or show one by its number in the list."""
    from app.domain.platform.mail.api import mailbox

    folder = mailbox(load_settings())
    messages = sorted(folder.glob("*.eml"))
    if not messages:
        click.echo(f"no mail in {folder}")
        return
    if number is not None:
        if not 1 <= number <= len(messages):
            stop(f"there are {len(messages)} mails; ask for 1 to {len(messages)}")
        messages = messages[number - 1 : number]
    for position, path in enumerate(messages, number or 1):
        message = email.message_from_bytes(path.read_bytes(), policy=email.policy.default)
        click.echo(f"{position:>4}  {message['Date']}  {message['To']}  {message['Subject']}")
        if number is not None:
            body = message.get_body(("plain",))
            click.echo("\n" + (body.get_content() if body else ""))


@main.command()
def doctor() -> None:
    """Check every part; say what is wrong and how to fix it."""
    from app import doctor as checks

    problems = 0
    for finding in asyncio.run(checks.examine(load_settings())):
        click.echo(f"{finding.state:<4} {finding.part:<13} {finding.text}")
        problems += finding.state == "BAD"
        if finding.state in {"BAD", "warn"}:
            click.echo(f"                   → {finding.fix}")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
