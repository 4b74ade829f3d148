"""Runs a command of the command line: its settings, its services, and its errors as one line."""

import asyncio
import contextlib
import sys
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, NoReturn, TypeVar

import click

from app import settings as configuration
from app.settings import Settings, SettingsError

T = TypeVar("T")


def load_settings(**defaults: Any) -> Settings:
    try:
        return configuration.load(**defaults)
    except SettingsError as error:
        stop(str(error))


def stop(message: str) -> NoReturn:
    click.echo(f"parley: {message}", err=True)
    sys.exit(1)


@contextlib.contextmanager
def one_line_errors() -> Iterator[None]:
    """Prints errors that a user can correct as one line, without a stack trace."""
    from app.bootstrap import WeakPassword
    from app.crypto.keyring import KeyProblem
    from app.kit.wheels import PartUnavailable
    from app.local.errors import CannotStart
    from db.schema import MigrationBlocked, SchemaBehind

    try:
        yield
    except (CannotStart, KeyProblem, PartUnavailable, WeakPassword) as error:
        stop(str(error))
    except (MigrationBlocked, SchemaBehind) as error:
        stop(str(error))
    except ConnectionError as error:
        stop(f"the database cannot be reached ({error}); is Parley running? See `parley doctor`")


def run_with_services(call: Callable[[Any], Awaitable[T]], *, any_schema: bool = False) -> T:
    """Stops when the schema is older than this release, unless `any_schema` is set."""
    from app import container
    from app.kit import logs
    from app.observe import readiness

    settings = load_settings()
    logs.configure("warning", settings.log_format)

    async def run() -> T:
        services = container.build(settings)
        try:
            if not any_schema:
                await readiness.require_schema(services.db)
            return await call(services)
        finally:
            await services.close()

    with one_line_errors():
        return asyncio.run(run())
