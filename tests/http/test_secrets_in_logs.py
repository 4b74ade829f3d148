"""Log lines of requests have no secret of their paths, queries and headers."""

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from litestar import Litestar, get

from app.http.dependencies import Id
from app.kit import logs
from tests.automation.incoming.factories import create_webhook
from tests.world import Client, World

_SECRET = "hunter2hunter2hunter2"


@pytest.fixture
def _all_lines() -> Iterator[None]:
    logs.configure("info", "json")
    yield
    logs.configure("warning", "json")


def _decode(output: str) -> list[dict[str, Any]]:
    return [msgspec.json.decode(line) for line in output.splitlines()]


def test_paths_are_logged_without_secrets(subtests: pytest.Subtests) -> None:
    cases = {
        f"/webhooks/in/orders-{_SECRET}": "/webhooks/in/[redacted]",
        f"//webhooks//in//orders-{_SECRET}/": "//webhooks//in//[redacted]/",
        f"/Webhooks/In/{_SECRET}/more": "/Webhooks/In/[redacted]/more",
        f"/api/v1/public/forms/contact/conversations/fcv_{_SECRET}/messages": (
            "/api/v1/public/forms/contact/conversations/fcv_[redacted]/messages"
        ),
        f"/v1/emb_{_SECRET}": "/v1/emb_[redacted]",
        f"/v1/vst_{_SECRET}.a-b_c": "/v1/vst_[redacted]",
        f"/approval/apl_{_SECRET}.a-b_c": "/approval/apl_[redacted]",
        "/api/v1/agents/agt_01k9x3m7e8c0v2q4r6t8w0y2a4": (
            "/api/v1/agents/agt_01k9x3m7e8c0v2q4r6t8w0y2a4"
        ),
        "/api/v1/incoming-webhooks/inh_1": "/api/v1/incoming-webhooks/inh_1",
    }
    for path, logged in cases.items():
        with subtests.test(path):
            assert logs.mask_path(path) == logged


@pytest.mark.usefixtures("_all_lines")
async def test_requests_are_logged_without_secrets(
    world: World,
    developer: Client,
    capsys: pytest.CaptureFixture[str],
    subtests: pytest.Subtests,
) -> None:
    slug = (await create_webhook(developer, slug=f"orders-{_SECRET}"))["slug"]
    capsys.readouterr()
    public = "/api/v1/public"
    cases = [
        ("POST", f"/webhooks/in/{slug}", {}),
        ("POST", f"/webhooks/in/{slug}x", {}),
        ("DELETE", f"/webhooks/in/{slug}", {}),
        ("GET", f"{public}/forms/a/conversations/fcv_{_SECRET}", {}),
        ("GET", f"{public}/forms/a/drafts", {"x-draft-token": _SECRET}),
        ("POST", f"{public}/agents/a/chat?api_key=emb_{_SECRET}", {}),
        ("POST", f"{public}/agents/a/chat", {"authorization": f"Bearer vst_{_SECRET}"}),
        ("GET", f"/embed/frame?api_key=emb_{_SECRET}", {"sec-fetch-dest": "iframe"}),
        ("GET", f"/invite?token={_SECRET}", {}),
        ("GET", f"/approval?token=apl_{_SECRET}", {}),
        ("GET", f"/auth/me?token={_SECRET}", {"authorization": f"Bearer {_SECRET}"}),
    ]
    for method, path, headers in cases:
        with subtests.test(f"{method} {path}"):
            await world.anonymous()(method, path, headers=headers)
            output = capsys.readouterr().err
            assert [line["event"] for line in _decode(output)] == ["request"]
            assert _SECRET not in output


@get("/webhooks/in/{slug:str}/fail", public=True)
async def fail(slug: Id) -> None:
    raise RuntimeError(slug)


@pytest.mark.usefixtures("app", "_all_lines")
async def test_a_failed_request_is_logged_without_secrets(
    changed_app: Litestar, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = await Client(changed_app).get(f"/webhooks/in/{_SECRET}/fail")
    assert answer.status_code == 500
    output = capsys.readouterr().err
    lines = _decode(output)
    assert _SECRET not in output
    assert [line["event"] for line in lines] == ["request failed", "request"]
    assert [line["path"] for line in lines] == ["/webhooks/in/[redacted]/fail"] * 2
