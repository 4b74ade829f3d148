"""Markdown as the widget draws it."""

import pytest
from playwright.async_api import Page

from app.web import assets
from tests.server import Server

_DRAW = """async ([module, texts]) => {
    const { MarkdownView } = await import(module);
    const element = document.createElement("div");
    const view = new MarkdownView(element);
    for (const text of texts) view.update(text);
    for (const item of element.querySelectorAll("*")) {
        for (const name of ["dir", "target", "rel", "tabindex"]) item.removeAttribute(name);
    }
    return element.innerHTML;
}"""

CASES = {
    "two paragraphs": ("One.\n\nTwo.", "<p>One.</p><p>Two.</p>"),
    "lines of a paragraph": ("One\ntwo", "<p>One<br>two</p>"),
    "emphasis": (
        "**bold** *it* __b__ _i_ ~~gone~~",
        "<p><strong>bold</strong> <em>it</em> <strong>b</strong> <em>i</em> <del>gone</del></p>",
    ),
    "nested emphasis": (
        "**bold and *both***",
        "<p><strong>bold and <em>both</em></strong></p>",
    ),
    "underscores within a word": ("snake_case_name", "<p>snake_case_name</p>"),
    "stars that mean times": ("2 * 3 * 4", "<p>2 * 3 * 4</p>"),
    "escaped marks": (r"\*not\* \[this\]", "<p>*not* [this]</p>"),
    "inline code": ("Use `a < b` now", "<p>Use <code>a &lt; b</code> now</p>"),
    "a mark without an end": ("**half", "<p>**half</p>"),
    "headings": ("# A\n### B ##", "<h3>A</h3><h5>B</h5>"),
    "code": ("```js\na();\n\nb();\n```", "<pre><code>a();\n\nb();</code></pre>"),
    "code that goes on": ("```\na", "<pre><code>a</code></pre>"),
    "a list": ("- a\n- b", "<ul><li>a</li><li>b</li></ul>"),
    "a list after a line": ("Two:\n- a\n- b", "<p>Two:</p><ul><li>a</li><li>b</li></ul>"),
    "numbers from five": ("5. a\n6. b", '<ol start="5"><li>a</li><li>b</li></ol>'),
    "nested lists": (
        "1. a\n   - x\n   - y\n2. b",
        "<ol><li>a<ul><li>x</li><li>y</li></ul></li><li>b</li></ol>",
    ),
    "a quote": ("> a\n> b", "<blockquote><p>a<br>b</p></blockquote>"),
    "a rule": ("a\n\n---\n\nb", "<p>a</p><hr><p>b</p>"),
    "a link": ("[t](https://a.example/b)", '<p><a href="https://a.example/b">t</a></p>'),
    "a plain address": (
        "See https://a.example/b.",
        '<p>See <a href="https://a.example/b">https://a.example/b</a>.</p>',
    ),
    "a mail address": (
        "[us](mailto:a@example.com)",
        '<p><a href="mailto:a@example.com">us</a></p>',
    ),
    "a picture": (
        "![cat](https://a.example/c.png)",
        '<p><a href="https://a.example/c.png">cat</a></p>',
    ),
    "a relative link": ("[here](/there)", "<p>here</p>"),
    "a script as a link": ("[here](javascript:alert(1))", "<p>[here](javascript:alert(1))</p>"),
    "html": ("<b>a</b> &amp;", "<p>&lt;b&gt;a&lt;/b&gt; &amp;amp;</p>"),
    "a table": (
        "| a | b |\n|:--|--:|\n| 1 | 2 |",
        (
            '<div class="table"><table><thead><tr><th>a</th><th class="end">b</th></tr></thead>'
            '<tbody><tr><td>1</td><td class="end">2</td></tr></tbody></table></div>'
        ),
    ),
    "no table": ("a | b", "<p>a | b</p>"),
}

# Each would take minutes if something needed time in proportion to the square of its length.
LONG = [
    "*",
    "**a ",
    "_",
    "[",
    "](",
    "`",
    "``a",
    " ",
    "| ",
    "- ",
    "> ",
    "#",
    "\n",
    "http://",
    "\\",
    "~~x",
]


@pytest.fixture
async def open_page(page: Page, server: Server) -> Page:
    await page.goto(f"{server.url}/forgot-password")
    return page


async def _draw(page: Page, *texts: str) -> str:
    drawn: str = await page.evaluate(_DRAW, [assets.url_of("shared/markdown.js"), list(texts)])
    return drawn


async def test_markdown_becomes_elements(open_page: Page, subtests: pytest.Subtests) -> None:
    for name, (text, expected) in CASES.items():
        with subtests.test(name):
            assert await _draw(open_page, text) == expected


async def test_a_text_that_grows_looks_like_one_that_was_there_at_once(
    open_page: Page, subtests: pytest.Subtests
) -> None:
    whole = "\n\n".join(text for text, _ in CASES.values())
    for step in (1, 7, 50):
        with subtests.test(step=step):
            parts = [whole[:end] for end in range(0, len(whole), step)]
            assert await _draw(open_page, *parts, whole) == await _draw(open_page, whole)


async def test_no_text_stalls_the_page(open_page: Page, subtests: pytest.Subtests) -> None:
    for part in LONG:
        with subtests.test(part):
            assert await _draw(open_page, part * (100_000 // len(part)) + "x")
