"""A page that draws one trace as a timeline.

The page itself has no data; the browser requests the trace with the user's own token.
"""

from typing import Any

from litestar import Request, Response, get
from litestar.params import FromPath

from app.web import pages

_BODY = """<main>
<header><h1>Trace</h1><p id="about"></p></header>
<section id="access" hidden>
<form id="sign-in" class="card"><h2>Sign in to see the trace</h2>
<label for="email">E-mail</label>
<input id="email" name="email" type="email" required autocomplete="username">
<label for="password">Password</label>
<input id="password" name="password" type="password" required autocomplete="current-password">
<div id="second" hidden><label for="code">Code of your authenticator</label>
<input id="code" name="code" inputmode="numeric" autocomplete="one-time-code"></div>
<button type="submit">Sign in</button></form>
<form id="paste" class="card"><h2>Or paste an access token</h2>
<label for="token">Access token</label>
<input id="token" name="token" type="password" required autocomplete="off" spellcheck="false">
<button type="submit">Use it</button></form>
</section>
<p role="status" aria-live="polite"></p>
<section id="result" hidden>
<div class="bar"><button type="button" id="again" class="quiet">Look again</button>
<button type="button" id="forget" class="quiet">Forget my token</button></div>
<div id="timeline" role="table" aria-label="Timeline"></div>
<aside id="details" hidden aria-live="polite"></aside>
</section>
<noscript><p>This page needs JavaScript.</p></noscript>
</main>"""


@get("/trace/{correlation_id:str}", include_in_schema=False, public=True, sync_to_thread=False)
def trace_page(request: Request[Any, Any, Any], correlation_id: FromPath[str]) -> Response[str]:  # noqa: ARG001
    page = pages.render("Trace", _BODY, script="pages/trace.js", style="pages/trace.css")
    return pages.respond(page)
