"""Admits requests of visitors: finds the form, allows the site, and charges the limits."""

from typing import Final, Literal

from app.domain.forms.definition.api import LiveForm, live
from app.domain.identity.tenants import api as tenants
from app.domain.identity.tenants.api import Visit, VisitorLimit
from app.domain.platform.storage import api as storage
from app.http import cors
from app.http.authorization import caller_of
from app.http.costs import COSTS
from app.http.dependencies import HttpRequest, services_of
from app.http.route_options import request_options
from app.kit import trace
from app.security import plans
from app.security.plans import Charge

from .errors import TooManySubmissions
from .submitting import Origin

# What is counted for an address and a form, each on its own.
Action = Literal["submit", "upload", "draft", "message"]
_REFUSALS: Final[dict[Action, str]] = {
    "submit": "Too many submissions of this form came from your address",
    "upload": "Too many files for this form came from your address",
    "draft": "Too many drafts of this form came from your address",
    "message": "Too many messages to this form came from your address",
}


async def admit(
    request: HttpRequest, slug: str, *, action: Action | None = None, is_published: bool = True
) -> LiveForm:
    """Raises FormNotFound, unless not `is_published` also for a form that is not published;
    TooManySubmissions, RateLimited for the address or for all visitors of the tenant, or
    QuotaExceeded for what would be stored.
    """
    services, origin = services_of(request), cors.origin_of(request)
    if origin is not None:
        # A form is public, and these routes accept no cookies.
        cors.allow_origin(request.scope["state"], request.scope["path"], origin)
    find = live.find_published if is_published else live.find_by_slug
    form = await find(services, slug)
    trace.current().tenant_id = form.tenant_id
    await tenants.charge_visitors(request, _describe_visit(request, form, action))
    if action is not None:
        with storage.hide_figures():
            await storage.require_space(services, form.tenant_id)
    return form


def _describe_visit(request: HttpRequest, form: LiveForm, action: Action | None) -> Visit:
    cost = request_options(request).cost or "read"
    if action == "message" and form.has_hosted_model:
        cost = "chat"
    return Visit(
        kind="forms",
        tenant_id=form.tenant_id,
        plan=form.plan,
        units=COSTS[cost],
        refusal="The forms of this site receive too many requests",
        address=caller_of(request).address,
        address_limits=(_limit_action(request, form, action),) if action is not None else (),
    )


def _limit_action(request: HttpRequest, form: LiveForm, action: Action) -> VisitorLimit:
    plan = plans.anonymous_plan(services_of(request).settings.form_submissions_per_minute)
    subject = f"form-{action}:{form.id}:{caller_of(request).address}"
    charge = Charge(subject, plan.to_script_argument(), 1)
    return VisitorLimit(charge, _REFUSALS[action], TooManySubmissions)


def describe_origin(request: HttpRequest) -> Origin:
    """The page is the one that the browser names; the page before it is what the form page or the
    widget reports, since a browser does not.
    """
    headers = request.headers
    origin = cors.origin_of(request) or ""
    return Origin(
        source="embed" if _is_foreign(request, origin) else "public",
        ip_address=caller_of(request).source,
        user_agent=headers.get("user-agent", ""),
        page_url=headers.get("referer", "") or (origin if origin != "null" else ""),
        referrer=headers.get("x-page-referrer", ""),
    )


def _is_foreign(request: HttpRequest, origin: str) -> bool:
    """True for a request of another site's page."""
    own = {*cors.own_origins(request), cors.called_origin(request)}
    return bool(origin) and origin not in own
