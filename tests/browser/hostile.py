"""Texts that would run a script, or load something, if a page read them as HTML."""

from typing import Final

from playwright.async_api import Page

_ATTACKS: Final = (
    "<script>window.hacked = 1</script>",
    "<img src=x onerror='window.hacked = 1'>",
    "<svg onload='window.hacked = 1'><animate onbegin='window.hacked = 1'></svg>",
    "<iframe srcdoc='<script>parent.hacked = 1</script>'></iframe>",
    "<iframe src='https://evil.example.net/frame'></iframe>",
    "<a href='javascript:window.hacked = 1'>press</a>",
    "<style>body { background: url(https://evil.example.net/style) }</style>",
    "<link rel=stylesheet href='https://evil.example.net/link'>",
    "<base href='https://evil.example.net/'>",
    "<form action='https://evil.example.net/'><button>go</button></form>",
    "<math><mtext></mtext><mglyph><style><img src=x onerror='window.hacked = 1'></style></math>",
    "\"><img src=x onerror='window.hacked = 1'>",
    "'-alert(1)-'",
    "{{constructor.constructor('window.hacked = 1')()}}",
    "</textarea></title></script><img src=x onerror='window.hacked = 1'>",
)
# The same, as far as Markdown has a form for it.
_MARKDOWN: Final = (
    "[press](javascript:window.hacked=1)",
    "[press](JaVaScRiPt:window.hacked=1)",
    "[press](java\tscript:window.hacked=1)",
    "[press](data:text/html,<script>window.hacked=1</script>)",
    "[press](vbscript:window.hacked=1)",
    "[press](&#106;avascript:window.hacked=1)",
    "![picture](https://evil.example.net/picture.png)",
    '![picture](x" onerror="window.hacked=1)',
    "<javascript:window.hacked=1>",
    '[a](https://ok.example.com/" onmouseover="window.hacked=1)',
    "`<img src=x onerror='window.hacked = 1'>`",
    "```html\n<img src=x onerror='window.hacked = 1'>\n```",
    "| <img src=x onerror='window.hacked = 1'> | b |\n|---|---|\n| <script>1</script> | d |",
    "# <img src=x onerror='window.hacked = 1'>",
    "> <script>window.hacked = 1</script>",
    "- <img src=x onerror='window.hacked = 1'>",
    "[![x](javascript:window.hacked=1)](javascript:window.hacked=1)",
    "**<img src=x onerror='window.hacked = 1'>**",
)
HTML: Final = " ".join(_ATTACKS)
MARKDOWN: Final = "\n\n".join((*_ATTACKS, *_MARKDOWN))
# Names that break a layout, or that a page could take for a link.
NAMES: Final = (
    HTML,
    "w" * 200,
    # Arabic and Hebrew, from right to left.
    "\u0645\u0633\u0627\u0639\u062f \u0627\u0644\u0645\u062a\u062c\u0631 " * 8,
    "\u05d7\u05e0\u05d5\u05ea" * 50,
    # A family and a flag, each of several characters.
    "\U0001f469\u200d\U0001f469\u200d\U0001f467 \U0001f3f3\ufe0f\u200d\U0001f308 " * 12,
    "[press](javascript:window.hacked=1) **bold** `code` ![x](https://evil.example.net/x.png)",
)


async def find_harm(page: Page, requested_urls: list[str], *own: str) -> list[str]:
    """Returns the scripts that ran and the requests that left for other servers."""
    hacked = await page.evaluate("window.hacked ? ['a script ran'] : []")
    foreign = [url for url in requested_urls if not url.startswith((*own, "data:", "blob:"))]
    return [*hacked, *foreign]
