"""Neither the embed key nor the provider's messages appear in answers and logs."""

from contextlib import closing

import msgspec
import pytest

from app.domain.conversations.embed import keys
from tests.conversations.embed.sites import ORIGIN, Site, error_of, stream_chat
from tests.http_clients import open_client
from tests.model_server import Reply
from tests.server import Server
from tests.stores import Stores


async def test_the_key_is_in_no_log_of_the_api(site: Site) -> None:
    await site.say()
    site.talk.script(Reply(status=400))
    await site.ask()
    for path in ("/api/v1/event-log", f"{site.talk.path}/logs", f"{site.talk.path}/conversations"):
        answer = await site.talk.client.get(path, params={"per_page": 100})
        assert answer.json()["data"]
        assert site.api_key not in answer.text
        assert site.api_key[4:] not in answer.text


async def test_no_error_repeats_the_key(shop: Site) -> None:
    other = await shop.talk.agent()
    caller = shop.talk.world.anonymous()
    path = f"/api/v1/public/agents/{other.agent_id}/chat"
    answers = [
        await caller.post(path, shop.body(), headers=shop.headers(ORIGIN)),
        await shop.ask(origin="https://evil.com"),
        await shop.ask("", origin=ORIGIN),
        await caller.post(f"{shop.path}/chat", shop.body(), params={"api_key": shop.api_key + "x"}),
        await caller.post(f"{shop.path}/nothing", shop.body(), params={"api_key": shop.api_key}),
        await caller.get(f"{shop.path}/chat", params={"api_key": shop.api_key}),
    ]
    assert [answer.status_code for answer in answers] == [404, 403, 422, 401, 404, 405]
    for answer in answers:
        assert shop.api_key not in answer.text
        assert shop.api_key not in str(answer.headers)


async def test_a_key_in_the_query_is_not_in_the_processs_log(
    stores: Stores, site: Site, capfd: pytest.CaptureFixture[str]
) -> None:
    params, path = {"api_key": site.api_key}, f"{site.path}/chat"
    with closing(Server(msgspec.structs.replace(stores.settings, log_level="debug"))) as server:
        server.wait()
        async with open_client(base_url=server.url, timeout=30) as client:
            assert (await client.post(path, json=site.body(), params=params)).status_code == 200
            site.talk.script(Reply(status=400))
            assert (await client.post(path, json=site.body(), params=params)).status_code == 502
            assert (await client.post(path, json={}, params=params)).status_code == 422
            assert (await client.get(path, params=params)).status_code == 405
            assert (await client.get("/none", params=params)).status_code == 404
    log_text = "".join(capfd.readouterr())
    assert path in log_text
    assert site.api_key not in log_text
    assert site.api_key[4:] not in log_text
    assert keys.hash_key(site.api_key) not in log_text


_PROVIDER_MESSAGE = (
    "Incorrect API key provided: sk-scripted-0123456789 of org-Acme, see platform.example"
)


async def test_visitors_do_not_see_the_providers_message(
    site: Site, subtests: pytest.Subtests
) -> None:
    for status, expected in (
        (400, (502, "provider_error")),
        (401, (503, "unavailable")),
        (429, (503, "unavailable")),
        (504, (502, "provider_error")),
    ):
        with subtests.test(status=status):
            headers = {"Retry-After": "3600"}
            site.talk.script(Reply(status=status, message=_PROVIDER_MESSAGE, headers=headers))
            answer = await site.ask()
            assert error_of(answer) == expected
            assert set(answer.json()["error"]["details"]) == {"message_id"}
            for secret in ("sk-scripted", "org-Acme", site.talk.model, "provider_status"):
                assert secret not in answer.text


async def test_a_public_stream_does_not_contain_the_providers_message(
    server: Server, site: Site, subtests: pytest.Subtests
) -> None:
    for after in [0, 1]:
        with subtests.test(after=after):
            site.talk.script(
                Reply(texts=["Half", " lost"], error_after=after, message=_PROVIDER_MESSAGE)
            )
            answer, events = await stream_chat(server, site)
            name, data = events[-1]
            assert (name, data["code"]) == ("error", "provider_error")
            assert data["details"] == {"message_id": events[0][1]["message_id"]}
            for secret in ("sk-scripted", "org-Acme", site.talk.model):
                assert secret not in answer.text


async def test_the_owner_sees_the_providers_message(site: Site) -> None:
    site.talk.script(Reply(status=400, message="the window is too small"))
    answer = await site.talk.client.post(f"{site.talk.path}/chat", {"message": "Hi"})
    assert "the window is too small" in answer.json()["error"]["message"]
