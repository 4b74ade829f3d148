"""Ways around the throttles and rate limits: other spellings, addresses, paths and methods."""

import httpx
import msgspec
import pytest
from litestar import Litestar

from app.kit.ids import new_id
from app.main import create_app
from app.services import Services
from tests.assertions import refused
from tests.http.connection import connect, read_response
from tests.server import Server
from tests.stores import Stores
from tests.world import Client, World


async def _sign_in(client: Client, email: str, **headers: str) -> httpx.Response:
    body = {"email": email, "password": "Wrong7Password"}
    return await client.post("/auth/login", body, headers=headers)


async def test_every_spelling_of_an_email_counts_for_its_account(
    app: Litestar, developer: Client
) -> None:
    """Each attempt comes from another address."""
    name, _, domain = developer.email.partition("@")
    spellings = [
        developer.email.upper(),
        f"{name.title()}@{domain}",
        f"{name}@{domain.upper()}",
        # A full stop of another script, and letters of full width.
        f"{name}@" + domain.replace(".", "\N{IDEOGRAPHIC FULL STOP}"),
        f"{name}@" + domain.replace("e", "\N{FULLWIDTH LATIN SMALL LETTER E}"),
    ]
    answers = [await _sign_in(Client(app), spelling) for spelling in spellings]
    assert [answer.status_code for answer in answers] == [401] * len(spellings)
    refused(await _sign_in(Client(app), developer.email), 429, "rate_limited")


async def test_a_forged_address_counts_for_nothing(developer: Client, anonymous: Client) -> None:
    for number in range(50):
        forged = {"x-forwarded-for": f"198.51.100.{number}", "forwarded": f"for=192.0.2.{number}"}
        answer = await _sign_in(anonymous, f"{new_id('x')}@example.com", **forged)
        assert answer.status_code == 401
    answer = await _sign_in(anonymous, developer.email, **{"x-forwarded-for": "203.0.113.7"})
    refused(answer, 429, "rate_limited")


async def test_all_addresses_of_an_ipv6_network_count_as_one(app: Litestar) -> None:
    for number in range(50):
        client = Client(app, address=f"2001:db8:5:6:{number:x}::{number:x}")
        assert (await _sign_in(client, f"{new_id('x')}@example.com")).status_code == 401
    email = f"{new_id('x')}@example.com"
    refused(await _sign_in(Client(app, address="2001:db8:5:6::ffff"), email), 429, "rate_limited")
    assert (await _sign_in(Client(app, address="2001:db8:5:7::1"), email)).status_code == 401


async def test_the_rate_limit_counts_an_ipv6_network_as_one_address(
    stores: Stores, services: Services
) -> None:
    app = create_app(msgspec.structs.replace(stores.settings, anonymous_per_minute=3))
    await services.redis.flushdb()
    clients = [Client(app, address=f"2001:db8:7:8::{number}") for number in range(4)]
    assert [(await client.get("/auth/me")).status_code for client in clients] == [
        *(401, 401, 401),
        429,
    ]
    await app.state.services.close()


async def test_one_mailbox_gets_few_mails_of_registrations(app: Litestar) -> None:
    """Whoever registers chooses the address, and with it who gets the mail."""
    name = new_id("x")

    async def register(email: str) -> httpx.Response:
        names = {"first_name": "Ada", "last_name": "Byron"}
        body = {"email": email, "password": "Correct7Horse", **names}
        return await Client(app).post("/auth/register", body)

    emails = [f"{name}+{number}@example.com" for number in range(4)]
    answers = [await register(email) for email in [f"{name}@example.com", *emails]]
    assert [answer.status_code for answer in answers] == [201] * 5
    answer = await register(f"{name.upper()}+more@EXAMPLE.com")
    refused(answer, 429, "rate_limited")
    assert (await register(f"{new_id('x')}+more@example.com")).status_code == 201


async def test_no_spelling_of_a_path_is_cheaper(world: World, subtests: pytest.Subtests) -> None:
    user = await world.user("viewer", await world.tenant(limits={"requests_per_minute": 1000}))
    remaining = 1000
    for path in (
        *("/test/chat", "/test/chat/", "/test%2Fchat", "/%74est/chat", "/test/chat%2F"),
        *("/test%2f%2fchat", "/test///chat", "/test/chat?a=b"),
    ):
        with subtests.test(path):
            answer = await user("POST", path)
            remaining -= 10
            assert answer.status_code == 201
            assert answer.headers["x-ratelimit-remaining"] == str(remaining)


async def test_every_method_and_every_replay_is_charged(world: World) -> None:
    user = await world.user("viewer", await world.tenant(limits={"requests_per_minute": 1000}))
    remaining = 1000
    for method, cost in (("HEAD", 1), ("OPTIONS", 1), ("PROPFIND", 2), ("TRACE", 2), ("X", 2)):
        answer = await user(method, "/test/counted")
        remaining -= cost
        assert answer.headers["x-ratelimit-remaining"] == str(remaining), method
    for _ in range(3):
        answer = await user.post("/test/counted", {}, headers={"idempotency-key": "again"})
        remaining -= 2
        assert answer.headers["x-ratelimit-remaining"] == str(remaining)
    assert answer.headers["idempotent-replayed"] == "true"


async def test_a_path_with_dots_reaches_no_route_without_a_charge(
    server: Server, subtests: pytest.Subtests
) -> None:
    """Paths below /health are not counted; a client of a test would resolve the dots itself."""
    for path in ("/health/../auth/me", "/docs/%2e%2e/auth/me", "/assets/..%2fauth/me"):
        with subtests.test(path):
            async with connect(server.settings.port) as (reader, writer):
                writer.write(f"GET {path} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
                refused(await read_response(reader), 404, "not_found")


async def test_requests_of_one_connection_are_charged_one_by_one(
    server: Server, world: World
) -> None:
    user = await world.user("viewer", await world.tenant(limits={"requests_per_minute": 1000}))
    request = f"GET /auth/me HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {user.token}\r\n\r\n"
    async with connect(server.settings.port) as (reader, writer):
        writer.write(request.encode() * 5)
        answers = [await read_response(reader) for _ in range(5)]
    assert [int(answer.headers["x-ratelimit-remaining"]) for answer in answers] == [
        *range(999, 994, -1)
    ]


async def test_only_one_document_of_the_api_is_served(anonymous: Client) -> None:
    """The framework's own one would be built on the event loop, for anybody, and not counted."""
    for path in ("/docs/schema", "/docs/schema/openapi.json", "/docs/schema/nothing"):
        refused(await anonymous.get(path), 404, "not_found")
