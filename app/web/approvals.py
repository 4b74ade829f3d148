"""The page of the links in mails that ask for a decision.

The page itself has no data: its script sends the token of the link. Opening it decides nothing, as
programs that check mails open links, too.
"""

from typing import Final

from litestar import Response, get

from app.web import pages

_BODY: Final = """<main class="card"><p role="status" aria-live="polite">Loading…</p>
<noscript><p>This page needs JavaScript.</p></noscript></main>"""


@get("/approval", include_in_schema=False, public=True, sync_to_thread=False)
def approval_page() -> Response[str]:
    page = pages.render("Decision", _BODY, script="pages/approval.js", style="pages/approval.css")
    return pages.respond(page)
