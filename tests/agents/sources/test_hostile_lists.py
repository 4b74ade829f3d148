"""XML of hostile sites: it is refused, quickly and by the script that reads it."""

import gzip

import pytest

from app.domain.agents.sources import xml_lists
from app.domain.agents.sources.failures import DocumentSkipped
from tests.failing_cases import FailingCases

_URL = "<url><loc>https://example.com/{}</loc></url>"


def _nest(levels: int) -> bytes:
    return b"<a>" * levels + b"</a>" * levels


def _laugh() -> bytes:
    entities = "".join(f'<!ENTITY l{level} "{f"&l{level - 1};" * 10}">' for level in range(1, 12))
    return (
        f'<!DOCTYPE urlset [<!ENTITY l0 "ha">{entities}]>'
        "<urlset><url><loc>&l11;</loc></url></urlset>"
    ).encode()


async def test_hostile_xml_is_refused(subtests: FailingCases) -> None:
    external = '<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]>'
    refused = {
        "entities": _laugh(),
        "an external entity": f"{external}<urlset><url><loc>&x;</loc></url></urlset>".encode(),
        "an entity in an attribute": f'{external}<urlset a="&x;"/>'.encode(),
        "levels": _nest(100_000),
        "not XML": b"<html><p>No sitemap",
        "nothing": b"",
        "no gzip": b"\x1f\x8bno",
        "a bomb": gzip.compress(bytes(51 * 1024 * 1024)),
        "bytes": bytes(range(256)) * 100,
    }
    for name, content in refused.items():
        with subtests.test(name):
            with pytest.raises(DocumentSkipped) as raised:
                await xml_lists.read_sitemap(content)
            assert "time or memory" not in str(raised.value)


async def test_lists_are_read_up_to_a_size() -> None:
    rows = "".join(_URL.format(number) for number in range(60_000))
    sitemap = await xml_lists.read_sitemap(f"<urlset>{rows}</urlset>".encode())
    assert len(sitemap.addresses) == 50_000
    items = "<item><title>A</title><description>" + "a" * 2_000_000 + "</description></item>"
    (entry, *_) = await xml_lists.read_feed(f"<rss><channel>{items}</channel></rss>".encode())
    assert len(entry.html) == 1_000_000


async def test_other_xml_has_no_documents() -> None:
    assert (await xml_lists.read_sitemap(b"<rss><url><loc>a</loc></url></rss>")).addresses == []
    assert await xml_lists.read_feed(b"<urlset><url/></urlset>") == []
