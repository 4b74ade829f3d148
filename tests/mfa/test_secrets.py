"""Secrets and codes are stored, mailed and logged nowhere in plain text."""

import asyncio
import base64
import re
import time

import httpx
import msgspec
import pyotp
import pytest

from app.services import Services
from tests.accounts.records import fetch_rows, read_mail_texts
from tests.mfa.api_calls import API, disable, replace_recovery_codes, set_up, verify_code
from tests.mfa.authenticators import MfaUser
from tests.server import Server
from tests.stores import Stores
from tests.world import Client

pytestmark = pytest.mark.usefixtures("frozen_clock")


def _list_text_forms(secret: str) -> set[str]:
    """Returns the forms that a secret could have in a row cast to text."""
    forms = {secret, secret.lower(), secret.encode().hex()}
    if re.fullmatch("[A-Z2-7]{32}", secret):
        forms.add(base64.b32decode(secret).hex())
    return forms


@pytest.mark.parametrize(
    "table",
    ["mfa_devices", "recovery_codes", "event_log", "mail_messages", "work"],
)
async def test_no_secret_and_no_code_is_in_the_database_in_plain_text(
    mfa_user: MfaUser, services: Services, table: str
) -> None:
    """Covers every stage: enabled, used, replaced and pending."""
    pending = await set_up(mfa_user.client)
    await verify_code(mfa_user.client, mfa_user.recovery_codes[0])
    replaced = await replace_recovery_codes(mfa_user.client)
    secrets = [
        mfa_user.authenticator.secret,
        pending["secret"],
        *mfa_user.recovery_codes,
        *pending["recovery_codes"],
        *replaced.json()["recovery_codes"],
    ]
    forms = {form for secret in secrets for form in _list_text_forms(secret)}
    rows = [row[0] for row in await fetch_rows(services, f"SELECT t::text FROM {table} AS t")]
    assert rows
    assert not [row for row in rows if any(form in row for form in forms)]


async def test_no_secret_and_no_code_is_in_redis(mfa_user: MfaUser, services: Services) -> None:
    dumps = [await services.redis.dump(key) for key in await services.redis.keys("*")]
    assert dumps
    secrets = [
        secret.encode() for secret in (mfa_user.authenticator.secret, *mfa_user.recovery_codes)
    ]
    assert not [dump for dump in dumps if dump and any(secret in dump for secret in secrets)]


async def test_no_secret_and_no_code_is_mailed(mfa_user: MfaUser, services: Services) -> None:
    await verify_code(mfa_user.client, mfa_user.recovery_codes[0])
    await disable(mfa_user.client, mfa_user.authenticator.next_code())
    texts = await read_mail_texts(services, mfa_user.client.email)
    assert texts
    assert not [text for text in texts for secret in _list_secrets(mfa_user) if secret in text]


def _list_secrets(mfa_user: MfaUser) -> list[str]:
    return [mfa_user.authenticator.secret, *mfa_user.recovery_codes]


async def test_no_secret_and_no_code_is_returned_again(mfa_user: MfaUser) -> None:
    answers = [
        await mfa_user.client.get(path) for path in (f"{API}/status", f"{API}/devices", "/auth/me")
    ]
    assert not [
        answer for answer in answers for secret in _list_secrets(mfa_user) if secret in answer.text
    ]


async def test_no_secret_and_no_code_is_logged(
    developer: Client, stores: Stores, capfd: pytest.CaptureFixture[str]
) -> None:
    """Runs a web process at log level debug and reads its output."""
    server = Server(msgspec.structs.replace(stores.settings, log_level="debug"))
    headers = {"authorization": f"Bearer {developer.token}"}
    try:
        await asyncio.to_thread(server.wait)
        async with httpx.AsyncClient(base_url=server.url + API, headers=headers) as http:
            setup = (await http.post("/setup")).json()
            codes = [
                pyotp.TOTP(setup["secret"]).at(int(time.time())),
                setup["recovery_codes"][0],
                "WRONGCODE1",
                setup["recovery_codes"][1],
            ]
            for route, code in zip(("enable", "verify", "verify", "disable"), codes, strict=True):
                assert (await http.post(f"/{route}", json={"code": code})).status_code == 200
    finally:
        await asyncio.to_thread(server.close)
    output = capfd.readouterr()
    # Without the fractions of seconds: six digits, as a code has.
    lines = re.sub(r"\.\d+Z", "Z", output.out + output.err)
    assert f"{API}/enable" in lines
    secrets = [setup["secret"], *setup["recovery_codes"], *codes]
    assert not [secret for secret in secrets if secret in lines]
