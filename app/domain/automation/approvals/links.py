"""Decisions by the link of a mail, as the user to whom it was sent."""

from typing import Final, Literal

from app.context import RequestContext
from app.kit import trace
from app.security.principal import Principal
from app.services import Services
from db.fast import Row
from db.session import Tx

from . import link_tokens, queries, service
from .schemas import ApprovalView, LinkedApproval, Origin

_DECIDE = "approvals:decide"
# What started a workflow: with its name, and without.
_STARTERS: Final = {
    "manual": ("{}", "a user"),
    "schedule": ("its schedule", "its schedule"),
    "event": ("the event {}", "an event"),
    "webhook": ("the webhook {}", "a webhook"),
    "form": ("the form {}", "a form"),
    "workflow": ("the workflow {}", "another workflow"),
}


def describe_starter(origin: Origin) -> str:
    """Returns what started the workflow, as the end of "started by …"."""
    text, text_without_name = _STARTERS[origin.trigger_type]
    return text.format(origin.trigger_name) if origin.trigger_name else text_without_name


async def look_up(tx: Tx, services: Services, token: str) -> LinkedApproval:
    """Decides nothing: programs that check mails follow links, too."""
    context, approval = await _open(tx, services, token)
    return await _build(context, queries.build_view(approval))


async def decide(
    tx: Tx,
    services: Services,
    token: str,
    status: Literal["approved", "rejected"],
    comment: str | None,
) -> LinkedApproval:
    """Like the route for those who have signed in."""
    context, approval = await _open(tx, services, token)
    decided = await service.decide(context, approval["id"], status, comment, via="mail")
    return await _build(context, decided)


async def _open(tx: Tx, services: Services, token: str) -> tuple[RequestContext, Row]:
    """Returns the context of the user's own request, and the approval. Raises ApprovalExpired, and
    ApprovalLinkNotFound also when this user may no longer decide it.
    """
    claims = link_tokens.verify(services.keyring, token)
    user = await queries.find_user(tx, claims.user_id)
    if user is None:
        raise link_tokens.not_found()
    principal = Principal(
        user["id"], user["tenant_id"], user["role"], "", frozenset(user["permissions"])
    )
    tx.set_scope(principal.scope)
    approval = await queries.find(tx, claims.approval_id)
    may_decide = principal.may(_DECIDE)
    if approval is None or not may_decide or not service.is_asked(principal, approval):
        raise link_tokens.not_found()
    current = trace.current()
    current.actor_id, current.tenant_id = principal.user_id, principal.tenant_id
    return RequestContext(tx, services, principal), approval


async def _build(context: RequestContext, approval: ApprovalView) -> LinkedApproval:
    names = await queries.list_names(context.tx, [context.principal.user_id, approval.decided_by])
    origin = approval.origin
    return LinkedApproval(
        title=approval.title,
        message=approval.message,
        workflow_name=origin.workflow_name if origin is not None else None,
        started_by=describe_starter(origin) if origin is not None else None,
        details=approval.details,
        status=approval.status,
        user_name=names[context.principal.user_id],
        comment=approval.comment,
        decided_by=names.get(approval.decided_by or ""),
        decided_at=approval.decided_at,
        expires_at=approval.expires_at,
    )
