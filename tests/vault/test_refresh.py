"""OAuth 2: tokens that are asked for once however many want them, and never overwrite a change."""

import asyncio
import base64
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest
from aiohttp import web

from app import container
from app.domain.vault import oauth
from app.domain.vault.decrypted import DecryptedCredential
from app.domain.vault.errors import TokenRefused
from app.domain.vault.service import TokenRefresher
from app.kit import clock
from app.services import Services
from tests.asking import until
from tests.ports import free_port
from tests.stores import Stores
from tests.vault.making import (
    PATH,
    actions,
    create,
    fetch,
    grant,
    opened,
    revealed,
    shown,
    sql,
    told,
    tried,
)
from tests.vault.servers import Asked, TokenServer, denied, granted
from tests.world import Client

OVER = "UPDATE credentials SET token_expires_at = now() - interval '1 second' WHERE id = $1"


@pytest.fixture
async def others(stores: Stores, services: Services) -> AsyncIterator[list[Services]]:
    """What two more processes would have."""
    made = [container.build(stores.settings) for _ in range(2)]
    yield made
    for other in made:
        await other.close()


async def _created(admin: Client, tokens: TokenServer, **secrets: Any) -> str:
    made = await create(admin, "oauth2", tokens.secrets(**secrets))
    await grant(admin, made["id"])
    return str(made["id"])


async def _expired(
    admin: Client, services: Services, tokens: TokenServer, **secrets: Any
) -> DecryptedCredential:
    """A credential for use, with a token that has run out."""
    given = {"access_token": "stale", "refresh_token": "planted-refresh", **secrets}
    credential_id = await _created(admin, tokens, **given)
    await sql(services, OVER, credential_id)
    return await opened(services, admin, credential_id)


async def _row(services: Services, credential_id: str) -> Any:
    (row,) = await fetch(services, "SELECT * FROM credentials WHERE id = $1", credential_id)
    return row


# The request for a token


async def test_a_client_asks_for_itself_in_a_form(admin: Client, tokens: TokenServer) -> None:
    credential_id = await _created(admin, tokens, scopes=["read", "write all"])
    assert (await tried(admin, credential_id))["success"] is True
    (asked,) = tokens.asked
    assert asked == Asked(
        {
            "grant_type": "client_credentials",
            "scope": "read write all",
            "client_id": "client",
            "client_secret": "planted-client-secret",
        },
        None,
    )


async def test_a_refresh_token_is_used_where_there_is_one(
    admin: Client, tokens: TokenServer
) -> None:
    credential_id = await _created(admin, tokens, refresh_token="planted-refresh")
    await tried(admin, credential_id)
    (asked,) = tokens.asked
    assert asked.form["grant_type"] == "refresh_token"
    assert asked.form["refresh_token"] == "planted-refresh"


async def test_a_server_that_takes_the_client_in_the_header_alone_is_served(
    admin: Client, tokens: TokenServer
) -> None:
    pair = base64.b64encode(b"cli%3Aent%20%C3%BC:planted%2Fsecret").decode()

    def answer(asked: Asked) -> web.Response:
        if "client_secret" in asked.form or asked.authorization != f"Basic {pair}":
            return denied(401, "invalid_client")
        return granted("by-header")

    tokens.answer = answer
    secrets = {"client_id": "cli:ent ü", "client_secret": "planted/secret"}
    credential_id = await _created(admin, tokens, **secrets)
    assert (await tried(admin, credential_id))["success"] is True
    assert len(tokens.asked) == 2
    assert (await revealed(admin, credential_id))["access_token"] == "by-header"


async def test_a_test_keeps_the_new_token_and_its_end(
    admin: Client, services: Services, tokens: TokenServer
) -> None:
    credential_id = await _created(admin, tokens, access_token="before")
    await tried(admin, credential_id)
    assert (await revealed(admin, credential_id))["access_token"] == "token-1"
    left = (await _row(services, credential_id))["token_expires_at"] - clock.now()
    assert 3500 < left.total_seconds() <= 3600


async def test_the_names_of_secrets_stay_in_order_after_a_refresh(
    admin: Client, tokens: TokenServer
) -> None:
    credential_id = await _created(admin, tokens)
    await tried(admin, credential_id)
    keys = (await shown(admin, credential_id))["secret_keys"]
    assert keys == ["access_token", "client_id", "client_secret", "token_url"]


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (denied(401, "invalid_client"), "the token endpoint answered 401 (invalid_client)"),
        (denied(400, "invalid_grant"), "the token endpoint answered 400 (invalid_grant)"),
        (denied(500, "server_error"), "the token endpoint answered 500 (server_error)"),
        (denied(429, "slow_down"), "the token endpoint answered 429 (slow_down)"),
        (web.Response(status=404), "the token endpoint answered 404"),
        (web.Response(body=b"<html>"), "the token endpoint answered 200"),
        (web.Response(body=b"\xff\xfe"), "the token endpoint answered 200"),
        (web.Response(body=b"[" * 100_000), "the token endpoint answered 200"),
        (web.json_response({"access_token": ""}), "the token endpoint answered 200"),
        (web.json_response({"access_token": 5}), "the token endpoint answered 200"),
        (web.json_response({"error": {"code": 5}}), "the token endpoint answered 200"),
        (web.Response(status=302, headers={"Location": "/token"}), "answered 302"),
    ],
)
async def test_a_test_that_gets_no_token_is_no_success(
    admin: Client, tokens: TokenServer, answer: web.Response, message: str
) -> None:
    status, body, headers = answer.status, answer.body, dict(answer.headers)
    tokens.answer = lambda _asked: web.Response(status=status, body=body, headers=headers)
    credential_id = await _created(admin, tokens)
    result = await tried(admin, credential_id)
    assert result["success"] is False
    assert message in result["message"]
    assert (await shown(admin, credential_id))["is_valid"] is False
    assert len(await told(admin, "invalid")) == 1


async def test_nobody_at_the_token_endpoint_is_no_success(
    admin: Client, tokens: TokenServer
) -> None:
    url = f"http://127.0.0.1:{free_port()}/token"
    credential_id = await _created(admin, tokens, token_url=url)
    result = await tried(admin, credential_id)
    assert result["success"] is False
    assert "cannot be asked" in result["message"]


@pytest.mark.parametrize("expires_in", [None, "soon", "NaN", "Infinity", 0, -5, 1e300, True])
async def test_a_strange_end_is_no_end(
    admin: Client, services: Services, tokens: TokenServer, expires_in: object
) -> None:
    tokens.answer = lambda _asked: granted("new", expires_in=expires_in)
    found = await _expired(admin, services, tokens)
    if expires_in is True:
        with pytest.raises(TokenRefused):
            await services.get(TokenRefresher).fresh(found)
        return
    assert (await services.get(TokenRefresher).fresh(found)).access_token == "new"
    assert (await _row(services, found.id))["token_expires_at"] is None


@pytest.mark.parametrize("expires_in", [3600, "3600", 3600.0, "3600.5"])
async def test_an_end_may_be_a_number_or_a_text(
    admin: Client, services: Services, tokens: TokenServer, expires_in: object
) -> None:
    tokens.answer = lambda _asked: granted("new", expires_in=expires_in)
    found = await _expired(admin, services, tokens)
    await services.get(TokenRefresher).fresh(found)
    left = (await _row(services, found.id))["token_expires_at"] - clock.now()
    assert 3500 < left.total_seconds() < 3602


async def test_an_error_that_repeats_a_secret_is_told_without_it(
    admin: Client, tokens: TokenServer
) -> None:
    tokens.answer = lambda asked: denied(400, f"bad {asked.form['client_secret']}")
    credential_id = await _created(admin, tokens)
    result = await tried(admin, credential_id)
    assert "planted" not in result["message"]
    (event,) = await told(admin, "invalid")
    assert "planted" not in str(event)


async def test_a_cut_error_repeats_no_part_of_a_secret(admin: Client, tokens: TokenServer) -> None:
    tokens.answer = lambda asked: denied(400, "x" * 70 + asked.form["client_secret"])
    credential_id = await _created(admin, tokens)
    assert "planted" not in (await tried(admin, credential_id))["message"]


# Fresh tokens for those who use the credential


async def test_a_good_token_is_used_as_it_is(
    admin: Client, services: Services, tokens: TokenServer
) -> None:
    credential_id = await _created(admin, tokens, access_token="good")
    found = await opened(services, admin, credential_id)
    assert (await services.get(TokenRefresher).fresh(found)).access_token == "good"
    assert tokens.asked == []


@pytest.mark.parametrize(("seconds", "asks"), [(5, 1), (25, 1), (45, 0), (3600, 0)])
async def test_a_token_is_renewed_a_little_before_its_end(
    admin: Client, services: Services, tokens: TokenServer, seconds: int, asks: int
) -> None:
    credential_id = await _created(admin, tokens, access_token="good")
    end = "UPDATE credentials SET token_expires_at = now() + $2 * interval '1 second' WHERE id = $1"
    await sql(services, end, credential_id, seconds)
    await services.get(TokenRefresher).fresh(await opened(services, admin, credential_id))
    assert len(tokens.asked) == asks


async def test_the_first_token_is_asked_for_by_the_first_use(
    admin: Client, services: Services, tokens: TokenServer
) -> None:
    found = await opened(services, admin, await _created(admin, tokens))
    assert (await services.get(TokenRefresher).fresh(found)).access_token == "token-1"
    again = await opened(services, admin, found.id)
    assert (await services.get(TokenRefresher).fresh(again)).access_token == "token-1"
    assert len(tokens.asked) == 1


async def test_twenty_users_in_three_processes_make_one_request(
    admin: Client, services: Services, others: list[Services], tokens: TokenServer
) -> None:
    found = await _expired(admin, services, tokens)
    tokens.open.clear()
    everybody = [services, *others]
    asking = [
        asyncio.create_task(everybody[number % 3].get(TokenRefresher).fresh(found))
        for number in range(20)
    ]
    await until(lambda: tokens.asked)
    # Each of the other processes has come back empty-handed at least once by now.
    await asyncio.sleep(3 * oauth._PAUSE_SECONDS)
    tokens.open.set()
    got = await asyncio.gather(*asking)
    assert {secrets.access_token for secrets in got} == {"token-1"}
    assert len(tokens.asked) == 1
    assert (await _row(services, found.id))["refresh_holder"] is None


async def test_a_rotated_refresh_token_is_kept_and_used_next(
    admin: Client, services: Services, tokens: TokenServer
) -> None:
    tokens.answer = lambda _asked: granted(
        f"token-{len(tokens.asked)}", refresh_token=f"refresh-{len(tokens.asked)}"
    )
    found = await _expired(admin, services, tokens)
    await services.get(TokenRefresher).fresh(found)
    assert (await revealed(admin, found.id))["refresh_token"] == "refresh-1"
    await sql(services, OVER, found.id)
    await services.get(TokenRefresher).fresh(await opened(services, admin, found.id))
    assert [asked.form["refresh_token"] for asked in tokens.asked] == [
        "planted-refresh",
        "refresh-1",
    ]


async def test_a_refresh_token_that_is_not_rotated_stays(
    admin: Client, services: Services, tokens: TokenServer
) -> None:
    found = await _expired(admin, services, tokens)
    await services.get(TokenRefresher).fresh(found)
    secrets = await revealed(admin, found.id)
    assert (secrets["refresh_token"], secrets["access_token"]) == ("planted-refresh", "token-1")


async def test_a_refused_token_is_renewed_once(
    admin: Client, services: Services, others: list[Services], tokens: TokenServer
) -> None:
    credential_id = await _created(admin, tokens, access_token="refused")
    found = await opened(services, admin, credential_id)
    asking = [
        user.get(TokenRefresher).fresh(found, refused="refused")
        for user in (services, *others)
        for _ in "123"
    ]
    got = await asyncio.gather(*asking)
    assert {secrets.access_token for secrets in got} == {"token-1"}
    assert len(tokens.asked) == 1


async def test_whoever_comes_late_with_a_refused_token_gets_the_newer_one(
    admin: Client, services: Services, tokens: TokenServer
) -> None:
    credential_id = await _created(admin, tokens, access_token="refused")
    found = await opened(services, admin, credential_id)
    await services.get(TokenRefresher).fresh(found, refused="refused")
    late = await services.get(TokenRefresher).fresh(found, refused="refused")
    assert late.access_token == "token-1"
    assert len(tokens.asked) == 1


async def test_secrets_that_were_replaced_meanwhile_are_not_overwritten(
    admin: Client, services: Services, tokens: TokenServer
) -> None:
    found = await _expired(admin, services, tokens)
    tokens.open.clear()
    asking = asyncio.create_task(services.get(TokenRefresher).fresh(found))
    await until(lambda: tokens.asked)
    new = tokens.secrets(client_id="new-client", access_token="new-token")
    await admin.put(f"{PATH}/{found.id}/secrets", {"secrets": new})
    tokens.open.set()
    await asking
    assert await revealed(admin, found.id) == new
    row = await _row(services, found.id)
    assert (row["token_expires_at"], row["refresh_holder"], row["is_valid"]) == (None, None, True)


async def test_a_refusal_of_secrets_that_were_replaced_meanwhile_says_nothing_of_the_new(
    admin: Client, services: Services, tokens: TokenServer
) -> None:
    tokens.answer = lambda _asked: denied(400, "invalid_grant")
    found = await _expired(admin, services, tokens)
    tokens.open.clear()
    asking = asyncio.create_task(services.get(TokenRefresher).fresh(found))
    await until(lambda: tokens.asked)
    await admin.put(f"{PATH}/{found.id}/secrets", {"secrets": tokens.secrets()})
    tokens.open.set()
    with pytest.raises(TokenRefused):
        await asking
    assert (await shown(admin, found.id))["is_valid"] is True
    assert await told(admin, "invalid") == []


async def test_other_fields_changed_meanwhile_stay_and_so_does_the_token(
    admin: Client, services: Services, tokens: TokenServer
) -> None:
    found = await _expired(admin, services, tokens)
    tokens.open.clear()
    asking = asyncio.create_task(services.get(TokenRefresher).fresh(found))
    await until(lambda: tokens.asked)
    await admin.put(f"{PATH}/{found.id}", {"name": "New", "metadata": {"a": 1}})
    tokens.open.set()
    await asking
    after = await shown(admin, found.id)
    assert (after["name"], after["metadata"]) == ("New", {"a": 1})
    assert (await revealed(admin, found.id))["access_token"] == "token-1"


async def test_a_holder_that_died_is_waited_for_and_then_replaced(
    admin: Client, services: Services, tokens: TokenServer
) -> None:
    found = await _expired(admin, services, tokens)
    lease = (
        "UPDATE credentials SET refresh_holder = 'rfr_dead', refresh_until = now() + $2 * "
        "interval '1 second' WHERE id = $1"
    )
    await sql(services, lease, found.id, 25)
    asking = asyncio.create_task(services.get(TokenRefresher).fresh(found))
    await asyncio.sleep(4 * oauth._PAUSE_SECONDS)
    assert tokens.asked == []
    await sql(services, lease, found.id, -1)
    assert (await asking).access_token == "token-1"
    assert (await _row(services, found.id))["refresh_holder"] is None


async def test_a_holder_that_comes_back_too_late_writes_nothing(
    admin: Client, services: Services, others: list[Services], tokens: TokenServer
) -> None:
    """Its time ran out and another has renewed the token since."""
    found = await _expired(admin, services, tokens)
    tokens.open.clear()
    late = asyncio.create_task(services.get(TokenRefresher).fresh(found))
    await until(lambda: tokens.asked)
    await sql(
        services,
        "UPDATE credentials SET refresh_until = now() - interval '1 second' WHERE id = $1",
        found.id,
    )
    second = asyncio.create_task(others[0].get(TokenRefresher).fresh(found))
    await until(lambda: len(tokens.asked) == 2)
    tokens.open.set()
    await asyncio.gather(late, second)
    row = await _row(services, found.id)
    assert (row["refresh_holder"], row["secrets_version"]) == (None, 2)
    assert (await revealed(admin, found.id))["access_token"] == "token-2"


async def test_whoever_waits_for_a_holder_in_vain_is_told(
    admin: Client, services: Services, tokens: TokenServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(oauth, "_HOLD_SECONDS", 0.2)
    found = await _expired(admin, services, tokens)
    await sql(
        services,
        "UPDATE credentials SET refresh_holder = 'rfr_dead', "
        "refresh_until = now() + interval '1 hour' WHERE id = $1",
        found.id,
    )
    with pytest.raises(TokenRefused, match="in time") as raised:
        await services.get(TokenRefresher).fresh(found)
    assert raised.value.final is False
    assert tokens.asked == []


async def test_a_user_that_gives_up_does_not_take_the_token_from_the_others(
    admin: Client, services: Services, tokens: TokenServer
) -> None:
    found = await _expired(admin, services, tokens)
    tokens.open.clear()
    first = asyncio.create_task(services.get(TokenRefresher).fresh(found))
    await until(lambda: tokens.asked)
    second = asyncio.create_task(services.get(TokenRefresher).fresh(found))
    await asyncio.sleep(0)
    first.cancel()
    tokens.open.set()
    assert (await second).access_token == "token-1"
    assert first.cancelled()


# Failures of a use


@pytest.mark.parametrize("status", [500, 502, 503, 429])
async def test_a_server_in_trouble_does_not_invalidate_what_is_used(
    admin: Client, services: Services, tokens: TokenServer, status: int
) -> None:
    tokens.answer = lambda _asked: denied(status, "server_error")
    found = await _expired(admin, services, tokens)
    with pytest.raises(TokenRefused) as raised:
        await services.get(TokenRefresher).fresh(found)
    assert raised.value.final is False
    assert (await shown(admin, found.id))["is_valid"] is True
    assert await told(admin, "invalid") == []


async def test_a_server_that_is_away_does_not_invalidate_what_is_used(
    admin: Client, services: Services, tokens: TokenServer
) -> None:
    url = f"http://127.0.0.1:{free_port()}/token"
    found = await _expired(admin, services, tokens, token_url=url)
    with pytest.raises(TokenRefused):
        await services.get(TokenRefresher).fresh(found)
    assert (await shown(admin, found.id))["is_valid"] is True


@pytest.mark.parametrize("error", ["invalid_grant", "invalid_client"])
async def test_a_refused_grant_invalidates_and_is_told_once(
    admin: Client, services: Services, others: list[Services], tokens: TokenServer, error: str
) -> None:
    tokens.answer = lambda _asked: denied(400, error)
    found = await _expired(admin, services, tokens)
    for user in (services, *others, services):
        with pytest.raises(TokenRefused) as raised:
            await user.get(TokenRefresher).fresh(found)
        assert raised.value.final is True
    assert (await shown(admin, found.id))["is_valid"] is False
    assert await told(admin, "invalid") == [
        {
            "credential_id": found.id,
            "name": "Ours",
            "credential_type": "oauth2",
            "reason": f"the token endpoint answered 400 ({error})",
        }
    ]


@pytest.mark.parametrize("status", [400, 500])
async def test_a_failure_leaves_the_turn_to_the_next(
    admin: Client, services: Services, tokens: TokenServer, status: int
) -> None:
    tokens.answer = lambda _asked: denied(status, "no")
    found = await _expired(admin, services, tokens)
    with pytest.raises(TokenRefused):
        await services.get(TokenRefresher).fresh(found)
    row = await _row(services, found.id)
    assert (row["refresh_holder"], row["refresh_until"]) == (None, None)
    tokens.answer = lambda _asked: granted("later")
    assert (await services.get(TokenRefresher).fresh(found)).access_token == "later"
    assert (await shown(admin, found.id))["is_valid"] is True


async def test_everybody_who_waits_is_told_of_a_failure(
    admin: Client, services: Services, tokens: TokenServer
) -> None:
    tokens.answer = lambda _asked: denied(400, "invalid_grant")
    found = await _expired(admin, services, tokens)
    asking = [services.get(TokenRefresher).fresh(found) for _ in range(5)]
    got = await asyncio.gather(*asking, return_exceptions=True)
    assert [type(answer) for answer in got] == [TokenRefused] * 5
    assert len(tokens.asked) <= 2
    assert len(await told(admin, "invalid")) == 1


async def test_a_deleted_credential_gets_no_token(
    admin: Client, services: Services, tokens: TokenServer
) -> None:
    found = await _expired(admin, services, tokens)
    await admin.delete(f"{PATH}/{found.id}")
    with pytest.raises(TokenRefused, match="does not exist"):
        await services.get(TokenRefresher).fresh(found)
    assert tokens.asked == []


async def test_a_credential_deleted_while_it_is_renewed_stays_deleted(
    admin: Client, services: Services, tokens: TokenServer
) -> None:
    found = await _expired(admin, services, tokens)
    tokens.open.clear()
    asking = asyncio.create_task(services.get(TokenRefresher).fresh(found))
    await until(lambda: tokens.asked)
    await admin.delete(f"{PATH}/{found.id}")
    tokens.open.set()
    await asking
    assert (await admin.get(f"{PATH}/{found.id}")).status_code == 404


async def test_another_tenant_s_credential_is_not_renewed(
    admin: Client, services: Services, tokens: TokenServer, super_admin: Client
) -> None:
    found = await _expired(admin, services, tokens)
    theirs = msgspec.structs.replace(found, tenant_id=super_admin.tenant_id)
    with pytest.raises(TokenRefused, match="does not exist"):
        await services.get(TokenRefresher).fresh(theirs)
    assert tokens.asked == []


async def test_a_refresh_is_no_deed_of_anybody(
    admin: Client, services: Services, tokens: TokenServer
) -> None:
    found = await _expired(admin, services, tokens)
    await services.get(TokenRefresher).fresh(found)
    assert await actions(admin, found.id) == ["used", "access_granted", "created"]
