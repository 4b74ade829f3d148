"""The address without a path: a page for people, a 404 for programs."""

import pytest

from tests.assertions import refused
from tests.http.test_requests import LIMIT_HEADERS
from tests.world import Client, World

BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8"


async def test_a_browser_is_sent_to_the_documentation(
    world: World, subtests: pytest.Subtests
) -> None:
    for method in ("GET", "HEAD"):
        anonymous = world.anonymous()
        with subtests.test(method=method):
            answer = await anonymous(method, "/", headers={"accept": BROWSER})
            assert (answer.status_code, answer.headers["location"]) == (302, "/docs")
            assert (answer.headers["cache-control"], answer.headers["vary"]) == (
                "no-store",
                "Accept",
            )
            assert answer.headers["x-content-type-options"] == "nosniff"
            assert set(answer.headers) >= LIMIT_HEADERS
            assert answer.content == b""


_CASES: list[str] = [
    "*/*",
    "application/json",
    "application/json, text/plain, */*",
    "text/html;q=0.5, application/json",
    "",
    "nonsense",
    "text/html;q=9e999",
    # Too long for a browser's: it is not parsed.
    "text/html," + "," * 1024,
]


async def test_a_program_gets_404(world: World, subtests: pytest.Subtests) -> None:
    for accept in _CASES:
        anonymous = world.anonymous()
        with subtests.test(accept=accept):
            refused(await anonymous("GET", "/", headers={"accept": accept}), 404, "not_found")


async def test_a_head_request_of_a_program_gets_404(anonymous: Client) -> None:
    answer = await anonymous("HEAD", "/", headers={"accept": "*/*"})
    assert answer.status_code == 404
