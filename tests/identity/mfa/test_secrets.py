"""Secrets and codes are stored, mailed and logged nowhere in plain text."""

import base64
import re

import pyotp
import pytest

from app.kit import clock, logs
from app.services import Services
from tests.identity.accounts.records import read_mail_texts
from tests.identity.mfa.api_calls import (
    API,
    disable,
    replace_recovery_codes,
    set_up,
    turn_on_mfa,
    verify_code,
)
from tests.identity.mfa.authenticators import FrozenClock, MfaUser
from tests.stored_texts import NewRows, find_in_redis
from tests.world import Client

pytestmark = pytest.mark.usefixtures("frozen_clock")


def _list_text_forms(secret: str) -> set[str]:
    """Returns the forms that a secret could have in a row cast to text."""
    forms = {secret, secret.lower(), secret.encode().hex()}
    if re.fullmatch("[A-Z2-7]{32}", secret):
        forms.add(base64.b32decode(secret).hex())
    return forms


async def test_no_secret_and_no_code_is_in_the_database_or_redis_in_plain_text(
    developer: Client, frozen_clock: FrozenClock, services: Services
) -> None:
    """Covers every stage: enabled, used, replaced and pending."""
    await services.redis.flushdb()
    new_rows = await NewRows.start(services)
    mfa_user = await turn_on_mfa(developer, frozen_clock)
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
    tables = {"mfa_devices", "recovery_codes", "event_log", "mail_messages", "work"}
    assert tables <= await new_rows.find(developer.tenant_id)
    assert await new_rows.find(*forms) == set()
    assert await find_in_redis(services.redis, *forms) == []


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
    developer: Client, capsys: pytest.CaptureFixture[str]
) -> None:
    """The log has all lines of level debug."""
    logs.configure("debug", "json")
    try:
        setup = (await developer.post(f"{API}/setup")).json()
        codes = [
            pyotp.TOTP(setup["secret"]).at(int(clock.epoch())),
            setup["recovery_codes"][0],
            "WRONGCODE1",
            setup["recovery_codes"][1],
        ]
        for route, code in zip(("enable", "verify", "verify", "disable"), codes, strict=True):
            answer = await developer.post(f"{API}/{route}", {"code": code})
            assert answer.status_code == 200
    finally:
        logs.configure("warning", "json")
    output = capsys.readouterr()
    # Without the fractions of seconds: six digits, as a code has.
    lines = re.sub(r"\.\d+Z", "Z", output.out + output.err)
    assert f"{API}/enable" in lines
    secrets = [setup["secret"], *setup["recovery_codes"], *codes]
    assert not [secret for secret in secrets if secret in lines]
