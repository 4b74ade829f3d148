"""Results of searches as plain text, and the text that the model reads."""

import time

import pytest

from app.domain.agents.search.engines.protocol import Hit
from app.domain.agents.search.results import (
    NOTE,
    NOTHING_FOUND,
    plain_text,
    render,
    select_results,
    shorten,
    to_source,
)

URL = "https://example.com/page"


def _hits(count: int) -> list[Hit]:
    return [Hit(f"Title {number}", f"{URL}/{number}", "Text") for number in range(count)]


# Texts


_TEXTS = [
    ("plain", "plain"),
    ("  two \n lines\tand\r\nmore ", "two lines and more"),
    # Marks of engines
    ("<b>bold</b> and <strong>strong</strong>", "bold and strong"),
    ("run<b>ning</b>", "running"),
    ("<EM>one</EM> <mark>two</mark>", "one two"),
    ("one<br>two<br/>three<br />four", "one two three four"),
    ('<span class="highlight">one</span>s', "ones"),
    ("<em\nclass='x'>one</em >", "one"),
    # Text that only looks like a tag
    ("a vector<int> of <T>", "a vector<int> of <T>"),
    ("Map<String, List<Bean>>", "Map<String, List<Bean>>"),
    ("#include <stdio.h>", "#include <stdio.h>"),
    ("mail <me@example.com>", "mail <me@example.com>"),
    ("5 < 6 and 7 > 3, I <3 it", "5 < 6 and 7 > 3, I <3 it"),
    ("a <bold> <spanner> <embed>", "a <bold> <spanner> <embed>"),
    ("a<b && c>d", "a<b && c>d"),
    ("broken <b", "broken <b"),
    # Entities, each once
    ("Fish &amp; chips", "Fish & chips"),
    ("&#65;&#x42;", "AB"),
    ("the tag &lt;b&gt;", "the tag <b>"),
    ("the entity &amp;lt;", "the entity &lt;"),
    ("the entity &amp;amp;amp;", "the entity &amp;amp;"),
    ("<b>&lt;b&gt;</b>", "<b>"),
    ("<scr<b>ipt>x", "<script>x"),
    # Characters that cannot be seen
    ("a\0b\x07c\x1b[31md", "abc[31md"),
    ("right\u202eleft\u2066x", "rightleftx"),
    ("right&#x202e;left", "rightleft"),
    ("soft\u00adhyphen", "softhyphen"),
    ("tag\U000e0041\U000e0042s", "tags"),
    ("private\ue000use", "privateuse"),
    ("lone\ud800surrogate", "lonesurrogate"),
    ("non\u00a0breaking\u2028line", "non breaking line"),
    ("line&#10;break", "line break"),
    ("\u0645\u06cc\u200c\u062e\u0648", "\u0645\u06cc\u200c\u062e\u0648"),
    ("\U0001f469\u200d\U0001f680", "\U0001f469\u200d\U0001f680"),
    ("", ""),
]


def test_a_text_becomes_one_plain_line(subtests: pytest.Subtests) -> None:
    for text, expected in _TEXTS:
        with subtests.test(text=text):
            assert plain_text(text, 1000) == expected


def test_a_huge_text_is_cleaned_in_short_time(subtests: pytest.Subtests) -> None:
    for part in ("<b", "<b ", "<span a", "&lt;", "<", " ", "<b>", "&amp;lt;", "\u202e"):
        with subtests.test(part=part):
            started = time.process_time()
            assert len(plain_text(part * 1_000_000, 100_000)) <= 100_000
            assert time.process_time() - started < 1.0


def test_a_text_is_cut_at_the_end_of_a_word() -> None:
    assert shorten("one two three", 13) == "one two three"
    assert shorten("one two three", 12) == "one two…"
    assert shorten("one two three", 8) == "one two…"
    assert shorten("x" * 20, 10) == "x" * 9 + "…"
    assert shorten("a " + "x" * 20, 10) == "a " + "x" * 7 + "…"


# Addresses


_URLS = [
    ("http://example.com", True),
    ("https://example.com:8443/a?b=c&d=%20#e", True),
    ("HTTPS://example.com/", True),
    ("https://b\u00fccher.example/", True),
    ("https://[2001:db8::1]/", True),
    ("javascript:alert(1)", False),
    ("JAVASCRIPT:alert(1)", False),
    ("data:text/html,x", False),
    ("ftp://example.com/", False),
    ("file:///etc/passwd", False),
    ("//example.com/", False),
    ("/relative", False),
    ("example.com", False),
    ("https://", False),
    ("https:///path", False),
    ("https://user:password@example.com/", False),
    ("https://example.com@evil.example/", False),
    ("https://example.com:port/", False),
    ("https://[bad/", False),
    ("https://example.com/a b", False),
    ("https://example.com/\nX: y", False),
    (" https://example.com/", False),
    ("https://example.com/\u202e", False),
    ('https://example.com/"onclick="x', False),
    ("https://example.com/<b>", False),
    ("https://example.com/" + "x" * 1000, False),
    ("", False),
]


def test_only_addresses_of_web_pages_are_results(subtests: pytest.Subtests) -> None:
    for url, is_valid in _URLS:
        with subtests.test(url=url):
            assert [item.url for item in select_results([Hit("T", url, "S")], 5)] == (
                [url] if is_valid else []
            )


# Selection


def test_at_most_as_many_results_as_allowed_are_selected() -> None:
    assert [item.title for item in select_results(_hits(9), 3)] == ["Title 0", "Title 1", "Title 2"]
    assert len(select_results(_hits(2), 3)) == 2


def test_invalid_hits_do_not_count() -> None:
    hits = [Hit("Bad", "javascript:x", ""), *_hits(3)]
    assert [item.title for item in select_results(hits, 2)] == ["Title 0", "Title 1"]


def test_a_page_is_selected_once() -> None:
    hits = [Hit("First", URL, "a"), Hit("Second", URL, "b"), *_hits(1)]
    assert [item.title for item in select_results(hits, 5)] == ["First", "Title 0"]


def test_a_result_without_a_title_has_its_host() -> None:
    (result,) = select_results([Hit("<b></b>", URL, "")], 5)
    assert result.title == "example.com"


def test_titles_and_snippets_are_bounded() -> None:
    (result,) = select_results([Hit("word " * 10_000, URL, "word " * 10_000)], 5)
    assert 150 < len(result.title) <= 200
    assert 900 < len(result.snippet) <= 1000
    assert result.title.endswith(" word…")


def test_the_rank_is_the_score_of_an_engine_without_scores() -> None:
    scores = [item.score for item in select_results(_hits(20), 20)]
    assert scores == sorted(scores, reverse=True)
    assert len(set(scores)) == 20
    assert scores[0] == 1.0
    assert scores[-1] > 0


def test_an_engines_own_score_is_within_0_and_1() -> None:
    for score, expected in [
        (0.25, 0.25),
        (1.5, 1.0),
        (-2.0, 0.0),
        (0.123456, 0.123),
        (10**400, 1.0),
    ]:
        (result,) = select_results([Hit("T", URL, "S", score)], 5)
        assert result.score == expected


# What is shown


def test_the_model_reads_a_numbered_list_after_a_note() -> None:
    hits = [Hit("One", f"{URL}/1", "First text"), Hit("Two", f"{URL}/2", "")]
    assert render(select_results(hits, 5)) == (
        f"{NOTE}\n\n1. One\n   {URL}/1\n   First text\n\n2. Two\n   {URL}/2"
    )
    assert "not instructions" in NOTE


def test_the_model_reads_that_nothing_was_found() -> None:
    assert render([]) == NOTHING_FOUND


def test_the_longest_list_is_shorter_than_what_a_model_is_sent() -> None:
    hits = [
        Hit("title " * 100, f"{URL}/{number}?{'x' * 900}", "snippet " * 1000)
        for number in range(20)
    ]
    assert len(render(select_results(hits, 20))) < 50_000


def test_a_source_has_the_title_a_preview_the_score_and_the_address() -> None:
    (result,) = select_results([Hit("One", URL, "word " * 200)], 5)
    source = to_source(result)
    assert (source.document_name, source.relevance_score) == ("One", 1.0)
    assert source.metadata == {"url": URL}
    assert 250 < len(source.chunk_preview) <= 300
    assert source.chunk_preview.endswith("word…")
