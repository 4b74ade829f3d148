"""Rules without a server: robots.txt, patterns, names, formats and schedules."""

from datetime import UTC, datetime, timedelta

import pytest

from app.domain.agents.sources import content, robots, schedules
from app.domain.agents.sources.failures import DocumentSkipped
from app.domain.agents.sources.wildcards import is_selected, matches
from tests.failing_cases import FailingCases

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def test_the_longest_rule_of_robots_txt_decides(subtests: FailingCases) -> None:
    """Examples of RFC 9309 and of the search engines that wrote it."""
    cases: list[tuple[str, str, bool]] = [
        ("", "/a", True),
        ("Disallow: /", "/a", False),
        ("Disallow:", "/a", True),
        ("Allow: /p\nDisallow: /", "/page", True),
        ("Allow: /folder\nDisallow: /folder", "/folder/page", True),
        ("Allow: /page\nDisallow: /*.htm", "/page.htm", False),
        ("Allow: /page\nDisallow: /*.ph", "/page.php5", True),
        ("Allow: /$\nDisallow: /", "/", True),
        ("Allow: /$\nDisallow: /", "/page.htm", False),
        ("Disallow: /fish*.php", "/fishheads/catfish.php?parameters", False),
        ("Disallow: /*.php$", "/filename.php?parameters", True),
        ("Disallow: /fish", "/Fish.asp", True),
        ("Disallow: /a%3cd.html", "/a%3Cd.html", False),
        ("Disallow: /%7Ejoe/", "/~joe/index.html", False),
        ("Disallow: /caf\u00e9", "/caf%C3%A9/menu", False),
        ("Disallow: /a # a comment", "/a", False),
        ("disallow : /a", "/a", False),
    ]
    for rules, path, expected in cases:
        with subtests.test(rules=rules, path=path):
            assert robots.parse(f"User-agent: *\n{rules}\n").allows(path) is expected


def test_the_group_for_this_client_replaces_that_for_all() -> None:
    text = """
    User-agent: *
    Disallow: /
    Crawl-delay: 5

    User-agent: OtherBot
    User-agent: Parley/1.0
    Disallow: /private
    Sitemap: https://example.com/sitemap.xml
    Crawl-delay: 2

    User-agent: parley
    Disallow: /more
    """
    rules = robots.parse(text)
    assert [rules.allows(path) for path in ("/a", "/private", "/more")] == [True, False, False]
    assert rules.delay_seconds == 2
    assert robots.parse("User-agent: *\nCrawl-delay: 86400").delay_seconds == 10
    assert robots.parse("User-agent: parleyx\nDisallow: /").allows("/a")


@pytest.mark.timeout(5)
def test_rules_of_a_hostile_site_take_little_time() -> None:
    pattern = "/" + "*a" * 900
    text = "User-agent: *\n" + f"Disallow: {pattern}b$\n" * 280
    assert robots.parse(text).allows("/" + "a" * 2000)


def test_patterns_cover_whole_paths(subtests: FailingCases) -> None:
    cases = [
        ("/help/*", "/help/a/b", True),
        ("/help/*", "/help", False),
        ("/help", "/help/a", False),
        ("*.pdf", "/a/b.pdf", True),
        ("*/old/*", "/help/old/a", True),
        ("a*a", "a", False),
        ("*", "", True),
        ("a**b", "ab", True),
    ]
    for pattern, path, expected in cases:
        with subtests.test(pattern=pattern, path=path):
            assert matches(pattern, path) is expected
    assert is_selected("/a", [], ["/b"])
    assert not is_selected("/a", ["/b"], [])
    assert not is_selected("/b/c", ["/b/*"], ["*c"])


def test_names_come_from_titles_or_paths(subtests: FailingCases) -> None:
    cases = [
        ("Opening hours", "/hours", "html", "Opening hours.html"),
        ("In / Out \\ Up", "/a", "html", "In - Out - Up.html"),
        ("", "/guide/install.md", "md", "guide - install.md"),
        ("", "/caf%C3%A9", "html", "caf\u00e9.html"),
        ("..", "/", "html", "Page.html"),
        ("a\u202eb\n", "/a", "html", "ab.html"),
        ("x" * 500, "/a", "pdf", f"{'x' * 150}.pdf"),
    ]
    for title, path, kind, expected in cases:
        with subtests.test(title=title, path=path):
            names = content.list_names(title, path, kind)  # type: ignore[arg-type]
            assert names[0] == expected
            assert len(set(names)) == len(names) >= 4
            assert max(map(len, names)) <= 255


def test_formats_are_told_by_the_server_or_the_ending(subtests: FailingCases) -> None:
    cases = [
        ("text/html; charset=utf-8", "https://a.example/page", "html"),
        ("application/xhtml+xml", "https://a.example/page", "html"),
        ("application/pdf", "https://a.example/download?id=1", "pdf"),
        ("text/plain", "https://a.example/README.md", "md"),
        ("text/plain", "https://a.example/README", "txt"),
        ("application/octet-stream", "https://a.example/a.docx", "docx"),
        ("", "https://a.example/a.csv?x=1", "csv"),
    ]
    for content_type, url, expected in cases:
        with subtests.test(content_type=content_type, url=url):
            assert content.find_kind(content_type, url) == expected
    for content_type in ("image/png", "application/octet-stream", "application/x-sh"):
        with pytest.raises(DocumentSkipped):
            content.find_kind(content_type, "https://a.example/a")


async def test_the_encoding_that_a_server_names_is_read() -> None:
    body = "<p>Ä".encode("iso-8859-1")
    converted = await content.as_utf8(body, "text/html; charset=ISO-8859-1")
    assert converted.decode("utf-8-sig") == "<p>Ä"
    for charset in ("utf-8", "punycode", "unicode_escape", "nonsense"):
        assert await content.as_utf8(body, f"text/html; charset={charset}") == body


def test_a_source_that_fails_is_tried_sooner_but_less_and_less() -> None:
    delays = [
        schedules.find_retry("daily", NOW, count, None) - NOW  # type: ignore[operator]
        for count in (1, 2, 3, 20)
    ]
    minutes = [delay / timedelta(minutes=1) for delay in delays]
    assert minutes == [10, 20, 40, 24 * 60]
    assert schedules.find_retry("hourly", NOW, 9, None) == NOW + timedelta(hours=1)
    assert schedules.find_retry("hourly", NOW, 1, 7200.0) == NOW + timedelta(hours=2)
    assert schedules.find_retry("manual", NOW, 1, 7200.0) is None
    assert schedules.find_wait(NOW, 1e9) == NOW + timedelta(days=1)
    for schedule, hours in (("hourly", 1), ("daily", 24), ("weekly", 168)):
        found = schedules.find_next(schedule, NOW)  # type: ignore[arg-type]
        assert found is not None
        assert 0.95 * hours <= (found - NOW) / timedelta(hours=1) <= hours
