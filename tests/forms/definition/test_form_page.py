"""The HTML page of a form: what it contains, and what it allows a browser to do."""

import json
import re
from datetime import timedelta
from urllib.parse import urljoin

import httpx
import pytest

from app.domain.forms.submissions.analytics import ViewCounter
from app.kit import clock
from app.services import Services
from tests.forms.api import PATH, PUBLIC, TEXT, act, create_form
from tests.world import Client

HOSTILE = "</script><script>alert(1)</script><!-- <b>&amp; \u2028\u2029"


async def _open(client: Client, slug: str) -> httpx.Response:
    return await client.get(f"/f/{slug}")


def _read_policy(answer: httpx.Response) -> dict[str, str]:
    parts = [part.strip() for part in answer.headers["content-security-policy"].split(";")]
    return {name: value for name, _, value in (part.partition(" ") for part in parts)}


def _read_form(answer: httpx.Response) -> dict[str, object]:
    match = re.search(r'<script type="application/json" id="form">(.*?)</script>', answer.text)
    assert match
    form: dict[str, object] = json.loads(match[1])
    return form


async def test_the_page_contains_the_public_form(developer: Client, anonymous: Client) -> None:
    form = await create_form(developer, description="Ask us anything")
    page = await _open(anonymous, form["slug"])
    assert page.status_code == 200
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    public = await anonymous.get(f"{PUBLIC}/{form['slug']}")
    assert _read_form(page) == public.json()["data"]
    assert "<title>Contact</title>" in page.text
    assert "Ask us anything" in page.text


async def test_the_page_names_all_its_modules_at_once(developer: Client, anonymous: Client) -> None:
    form = await create_form(developer)
    page = await _open(anonymous, form["slug"])
    urls = re.findall(r'<link rel="modulepreload" href="([^"]+)">', page.text)
    assert len(set(urls)) == len(urls) > 10
    for url in urls:
        script = await anonymous.get(url)
        assert script.status_code == 200
        assert "immutable" in script.headers["cache-control"]
        for name in re.findall(r'from "([^"]+)"', script.text):
            assert urljoin(url, name) in urls


async def test_hostile_texts_end_no_element(developer: Client, anonymous: Client) -> None:
    field = {**TEXT, "label": HOSTILE, "help_text": HOSTILE, "placeholder": HOSTILE}
    name = HOSTILE.replace("\u2028\u2029", "")
    form = await create_form(developer, field, name=name, description=HOSTILE)
    page = await _open(anonymous, form["slug"])
    data = _read_form(page)
    assert (data["name"], data["description"]) == (name, HOSTILE)
    assert page.text.count("<script") == 2
    assert "alert(1)</script>" not in page.text
    assert "<!--" not in page.text


async def test_any_site_may_frame_the_page_and_nothing_else_is_allowed(
    developer: Client, anonymous: Client
) -> None:
    form = await create_form(developer)
    for slug in (form["slug"], "unknown"):
        page = await _open(anonymous, slug)
        assert "x-frame-options" not in page.headers
        assert page.headers["cross-origin-resource-policy"] == "cross-origin"
        assert _read_policy(page) == {
            "default-src": "'none'",
            "script-src": "'self'",
            "style-src": "'self'",
            "connect-src": "'self'",
            "img-src": "data:",
            "form-action": "'none'",
            "base-uri": "'none'",
            "frame-ancestors": "*",
        }
    other = await anonymous.get(f"{PUBLIC}/{form['slug']}")
    assert other.headers["x-frame-options"] == "DENY"


async def test_the_policy_names_the_origin_of_the_logo(
    developer: Client, anonymous: Client, subtests: pytest.Subtests
) -> None:
    for url, source in (
        ("https://cdn.example.com/a/logo.png?x=1", " https://cdn.example.com"),
        ("http://example.com:8080/logo.png", " http://example.com:8080"),
        ("https://bücher.example/logo.png", " https://xn--bcher-kva.example"),
        # What could change the policy is left out.
        ("https://example.com;script-src/logo.png", ""),
        ("https://example.com,*/logo.png", ""),
        ("https://user@example.com/logo.png", ""),
        ("https://*/logo.png", ""),
    ):
        with subtests.test(url):
            form = await create_form(developer, branding={"logo_url": url})
            page = await _open(anonymous, form["slug"])
            assert _read_policy(page)["img-src"] == f"data:{source}"


async def test_a_form_that_cannot_be_filled_in_has_a_friendly_page(
    developer: Client, anonymous: Client, subtests: pytest.Subtests
) -> None:
    draft = await create_form(developer, is_published=False)
    archived = await create_form(developer)
    assert (await act(developer, archived, "archive")).status_code == 200
    past = (clock.now() - timedelta(hours=1)).isoformat()
    closed = await create_form(developer, settings={"closes_at": past})
    for name, slug, status, title in (
        ("unknown", "no-such-form", 404, "This form is not available"),
        ("draft", draft["slug"], 404, "This form is not available"),
        ("archived", archived["slug"], 404, "This form is not available"),
        ("closed", closed["slug"], 409, "This form is closed"),
    ):
        with subtests.test(name):
            page = await _open(anonymous, slug)
            assert page.status_code == status
            assert page.headers["content-type"] == "text/html; charset=utf-8"
            assert f"<h1>{title}</h1>" in page.text
            assert 'id="form"' not in page.text


async def test_a_page_is_one_view(developer: Client, anonymous: Client, services: Services) -> None:
    form = await create_form(developer)
    for slug in (form["slug"], form["slug"], "no-such-form"):
        await _open(anonymous, slug)
    await services.get(ViewCounter).store()
    answer = await developer.get(f"{PATH}/{form['id']}")
    assert answer.json()["data"]["stats"]["views"] == 2
