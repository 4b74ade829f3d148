"""What the engines read from pages and answers."""

import html
import json
from typing import Any

import pytest

from app.domain.agents.search.engines.duckduckgo_child import Refused, parse_page, resolve_link
from app.domain.agents.search.engines.protocol import Hit
from app.domain.agents.search.results import select_results
from app.net.egress import Egress
from tests.agents.search.engine_server import (
    ITEMS,
    EngineServer,
    duckduckgo_page,
    duckduckgo_result,
    wrap_results,
)
from tests.agents.search.engines import ENGINES, HITS, build_request, expect_failure

_PAGES: list[tuple[str, str, list[Hit]]] = [
    ("redirects", duckduckgo_page(ITEMS), HITS),
    (
        "direct links",
        wrap_results([duckduckgo_result("One", "https://one.example/", "Text")]),
        [Hit("One", "https://one.example/", "Text")],
    ),
    (
        "tags in texts",
        wrap_results([duckduckgo_result("<b>O</b>ne", "https://one.example/", "A <b>b</b> &amp;")]),
        [Hit("One", "https://one.example/", "A b &amp;")],
    ),
    (
        "ads",
        wrap_results(
            [
                duckduckgo_result("Ad", "https://duckduckgo.com/y.js?ad_domain=a.example", "Buy"),
                duckduckgo_result(
                    "Ad",
                    "//duckduckgo.com/l/?uddg=https%3A%2F%2Fduckduckgo.com%2Fy.js%3Fad_domain%3Da",
                    "Buy",
                ),
                duckduckgo_result("One", "https://one.example/", "Text"),
            ]
        ),
        [Hit("One", "https://one.example/", "Text")],
    ),
    (
        "no link or snippet",
        wrap_results(
            [
                '<div class="result"><h2>No link</h2></div>',
                '<div class="result"><a class="result__a" href="https://one.example/">One</a></div>',
            ]
        ),
        [Hit("One", "https://one.example/", "")],
    ),
    ("nothing found", wrap_results(['<div class="no-results">No results.</div>']), []),
    ("nothing found in a result", wrap_results(['<div class="result result--no-result">']), []),
    ("cut off", duckduckgo_page(ITEMS).partition("</body>")[0], HITS),
]


def _parse(page: str) -> list[Hit]:
    return [Hit(*result) for result in parse_page(page.encode())]


def test_a_page_of_duckduckgo_is_read(subtests: pytest.Subtests) -> None:
    for name, page, hits in _PAGES:
        with subtests.test(name=name):
            assert _parse(page) == hits


def test_a_text_of_duckduckgo_is_shown_as_its_page_shows_it(subtests: pytest.Subtests) -> None:
    for text in ("vector<int>", "the tag <b>", "the entity &lt;", "Fish & chips", "I <3 it"):
        with subtests.test(text=text):
            result = duckduckgo_result(html.escape(text), "https://one.example/", html.escape(text))
            (shown,) = select_results(_parse(wrap_results([result])), 1)
            assert (shown.title, shown.snippet) == (text, text)


_PAGES_WITHOUT_RESULTS: list[bytes] = [
    b"",
    b"  ",
    b"\xff\xfe\x00",
    b"not HTML",
    b"<!-- only a comment -->",
    b"<html><body><form id='challenge'>Are you a person?</form></body></html>",
    b'{"results": []}',
    b"<div>" * 5000,
]


def test_a_page_without_results_of_duckduckgo_is_unreadable(subtests: pytest.Subtests) -> None:
    for page in _PAGES_WITHOUT_RESULTS:
        with subtests.test(page=page), pytest.raises(Refused):
            parse_page(page)


def test_no_file_is_read_for_an_entity_of_a_page() -> None:
    page = '<!DOCTYPE html [<!ENTITY x SYSTEM "file:///etc/passwd">]>' + wrap_results(
        [duckduckgo_result("&x;", "https://one.example/", "S")]
    )
    (hit,) = _parse(page)
    assert "root" not in hit.title


_LINKS = [
    ("https://a.example/x?y=z", "https://a.example/x?y=z"),
    (
        "//duckduckgo.com/l/?uddg=https%3A%2F%2Fa.example%2F%3Fq%3D1%26r&rut=2",
        "https://a.example/?q=1&r",
    ),
    ("https://html.duckduckgo.com/l/?uddg=http%3A%2F%2Fa.example", "http://a.example"),
    ("/l/?uddg=https%3A%2F%2Fa.example%2F", "https://a.example/"),
    ("/l/?other=1", ""),
    ("https://duckduckgo.com/about", "https://duckduckgo.com/about"),
    ("https://duckduckgo.com/y.js?ad_provider=x", None),
    ("/y.js?u3=x", None),
    ("https://duckduckgo.com/z?ad_domain=x", None),
    ("https://notduckduckgo.com/y.js", "https://notduckduckgo.com/y.js"),
    ("javascript:alert(1)", "javascript:alert(1)"),
    ("https://[bad", None),
]


def test_links_of_duckduckgo_lead_to_the_result(subtests: pytest.Subtests) -> None:
    for href, url in _LINKS:
        with subtests.test(href=href):
            assert resolve_link(href) == url


_ANSWERS: list[tuple[str, Any, list[Hit]]] = [
    ("searxng", {"results": []}, []),
    ("searxng", {"results": [{"url": "https://a.example/"}]}, [Hit("", "https://a.example/", "")]),
    ("searxng", {"results": [{"url": None, "title": None, "content": None}]}, [Hit("", "", "")]),
    ("brave", {"type": "search"}, []),
    ("brave", {"type": "search", "web": None}, []),
    ("brave", {"type": "search", "web": {}}, []),
    (
        "brave",
        {
            "type": "search",
            "web": {
                "results": [
                    {"url": "https://a.example/", "title": "A", "family_friendly": False},
                    {"url": "https://b.example/", "title": "B", "family_friendly": True},
                ]
            },
        },
        [Hit("B", "https://b.example/", "")],
    ),
    ("tavily", {"results": []}, []),
    (
        "tavily",
        {"results": [{"url": "https://a.example/", "title": ["A"], "content": 5, "score": "x"}]},
        [Hit("", "https://a.example/", "")],
    ),
    ("tavily", {"results": [{"url": "https://a.example/"}]}, [Hit("", "https://a.example/", "")]),
]


async def test_an_answer_with_missing_or_odd_parts_is_read(
    loopback: Egress, engine: EngineServer, subtests: pytest.Subtests
) -> None:
    for name, answer, hits in _ANSWERS:
        with subtests.test(name=name, answer=answer):
            engine.body = json.dumps(answer)
            assert await ENGINES[name][0](loopback, engine.url).search(build_request()) == hits


async def test_an_answer_of_another_form_fails_the_search(
    loopback: Egress, engine: EngineServer, subtests: pytest.Subtests
) -> None:
    bodies: list[str | bytes] = [
        "",
        "{",
        "[]",
        "null",
        "{}",
        '{"results": 5}',
        "<html></html>",
        b"\xff",
        "[" * 9999,
    ]
    for name, (create, _) in ENGINES.items():
        for body in bodies:
            with subtests.test(name=name, body=body[:20]):
                engine.body = body
                assert (await expect_failure(create(loopback, engine.url))).reason == "bad_response"
