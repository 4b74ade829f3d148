"""Redirects of the egress client: each hop is checked, and credentials stay on their origin."""

import pytest

from app.net.egress import BlockedAddress, Egress
from tests.net.egress_servers import METADATA, FakeResolver, Site, open_egress


async def test_a_redirect_is_not_followed_by_default(
    loopback: Egress, site: Site, other: Site
) -> None:
    answer = await loopback.request("GET", site.redirect(other.url()))
    assert (answer.status, answer.headers["Location"]) == (302, other.url())
    assert other.requests == []


async def test_a_redirect_is_followed_on_request(
    loopback: Egress, site: Site, other: Site, subtests: pytest.Subtests
) -> None:
    for status in (301, 302, 303, 307, 308):
        with subtests.test(status=status):
            answer = await loopback.request(
                "GET", site.redirect(other.url("/end"), status), redirects=1
            )
            assert (answer.status, answer.body, answer.url) == (200, b"other", other.url("/end"))


async def test_a_redirect_may_be_relative(loopback: Egress, site: Site) -> None:
    answer = await loopback.request("GET", site.redirect("../end?a=b"), redirects=1)
    assert answer.url == site.url("/end?a=b")


async def test_no_more_redirects_are_followed_than_the_limit(loopback: Egress, site: Site) -> None:
    url = site.redirect(site.redirect(site.url("/end")))
    answer = await loopback.request("GET", url, redirects=1)
    assert (answer.status, answer.headers["Location"]) == (302, site.url("/end"))


async def test_a_redirect_to_a_refused_address_is_blocked(
    site: Site, subtests: pytest.Subtests
) -> None:
    cases: list[str] = [
        f"http://{METADATA}/latest/meta-data/",
        "http://10.0.0.1/",
        "http://[::1]/",
        "http://127.0.0.2/",
        "http://inside.test/",
        "http://user:password@127.0.0.1/",
        "ftp://127.0.0.1/",
        "http://[",
    ]
    for target in cases:
        with subtests.test(target=target):
            resolver = FakeResolver({"inside.test": [["10.0.0.1"]]})
            async with open_egress("127.0.0.1", resolve=resolver) as egress:
                with pytest.raises(BlockedAddress):
                    await egress.request("GET", site.redirect(target), redirects=5)


async def test_a_redirect_to_a_url_without_host_is_blocked(
    loopback: Egress, site: Site, subtests: pytest.Subtests
) -> None:
    cases: list[str] = [
        "file:///etc/passwd",
        "javascript:alert(1)",
        "data:text/plain,x",
        "http:///path",
    ]
    for target in cases:
        with subtests.test(target=target), pytest.raises(BlockedAddress):
            await loopback.request("GET", site.redirect(target), redirects=5)


async def test_the_second_hop_is_checked_like_the_first(
    loopback: Egress, site: Site, other: Site
) -> None:
    url = site.redirect(other.redirect("http://10.0.0.1/"))
    with pytest.raises(BlockedAddress):
        await loopback.request("GET", url, redirects=5)


async def test_authorization_stays_on_the_same_origin(loopback: Egress, site: Site) -> None:
    headers = {"Authorization": "Bearer abc"}
    await loopback.request("GET", site.redirect("/end"), headers=headers, redirects=1)
    assert site.requests[1].headers["authorization"] == "Bearer abc"


async def test_a_secret_header_is_not_sent_to_another_origin(
    loopback: Egress, site: Site, other: Site, subtests: pytest.Subtests
) -> None:
    for name in ("Authorization", "authorization", "Cookie", "X-API-Key"):
        with subtests.test(name=name):
            url = site.redirect(other.url())
            await loopback.request("GET", url, headers={name: "abc"}, redirects=1)
            assert name.lower() not in other.requests[-1].headers


async def test_a_secret_header_is_not_sent_after_a_redirect_back_to_its_origin(
    loopback: Egress, site: Site, other: Site
) -> None:
    url = site.redirect(other.redirect(site.url("/end")))
    await loopback.request("GET", url, headers={"Authorization": "abc"}, redirects=2)
    assert "authorization" not in site.requests[1].headers


async def test_only_headers_without_credentials_reach_another_origin(
    loopback: Egress, site: Site, other: Site
) -> None:
    headers = {"Accept-Language": "de", "X-Goog-Api-Key": "secret"}
    await loopback.request("GET", site.redirect(other.url()), headers=headers, redirects=1)
    assert other.requests[0].headers["accept-language"] == "de"
    assert "x-goog-api-key" not in other.requests[0].headers


async def test_the_headers_of_the_caller_do_not_change(
    loopback: Egress, site: Site, other: Site
) -> None:
    headers = {"Authorization": "abc"}
    await loopback.request("GET", site.redirect(other.url()), headers=headers, redirects=1)
    assert headers == {"Authorization": "abc"}


async def test_a_post_becomes_a_get_without_a_body(
    loopback: Egress, site: Site, subtests: pytest.Subtests
) -> None:
    for status in (301, 302, 303):
        with subtests.test(status=status):
            await loopback.request("POST", site.redirect("/end", status), body=b"data", redirects=1)
            assert (site.requests[-1].method, site.requests[-1].body) == ("GET", b"")


async def test_a_post_stays_a_post_with_its_body(
    loopback: Egress, site: Site, subtests: pytest.Subtests
) -> None:
    for status in (307, 308):
        with subtests.test(status=status):
            await loopback.request("POST", site.redirect("/end", status), body=b"data", redirects=1)
            assert (site.requests[-1].method, site.requests[-1].body) == ("POST", b"data")
