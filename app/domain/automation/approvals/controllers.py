from typing import Annotated, Literal

from litestar import Controller, get, post
from litestar.params import JSONBody, QueryParameter

from app.http.dependencies import Context, Id, Page, Services, Tx
from app.http.paging import OfStatus, Sort
from app.kit.paging import Paged
from app.kit.views import Data

from . import links, service
from .queries import Filter
from .schemas import ApprovalView, Decision, LinkDecision, LinkedApproval, LookUp, Status


class ApprovalController(Controller):
    path = "/api/v1/approvals"
    tags = ["Approvals"]

    @get(summary="List approvals", signed_in=True)
    async def list_approvals(
        self,
        context: Context,
        page_in: Page,
        assigned_to: Annotated[
            Literal["mine", "all"],
            QueryParameter(
                name="scope",
                description="`mine` are those that ask the caller, by user id or by role; `all` "
                "needs approvals:read",
            ),
        ] = "mine",
        status: OfStatus[Status] = None,
        workflow_execution_id: Annotated[
            str | None,
            QueryParameter(max_length=64, description="Only approvals of this execution"),
        ] = None,
        sort: Sort = None,
    ) -> Paged[ApprovalView]:
        """Sort by created_at, or by expires_at those with `status=pending` or of one execution; the
        newest first by default.
        """
        filters = Filter(status=status, workflow_execution_id=workflow_execution_id)
        return await service.list_page(context, assigned_to, filters, page_in, sort)

    @get("/{approval_id:str}", summary="Get an approval", signed_in=True)
    async def get_approval(self, context: Context, approval_id: Id) -> Data[ApprovalView]:
        """Those that ask the caller; any other one needs approvals:read."""
        return Data(await service.get(context, approval_id))

    @post(
        "/{approval_id:str}/approve",
        summary="Approve a request",
        needs="approvals:decide",
        status_code=200,
    )
    async def approve(
        self, context: Context, approval_id: Id, data: JSONBody[Decision | None] = None
    ) -> Data[ApprovalView]:
        """Only for those who are asked: the users in `user_ids`, or the users of exactly that
        `role` in the approval's tenant. Nobody else decides, whatever their permissions: neither a
        tenant_admin nor a super_admin who is not asked. There is one outcome: a second decision
        gets 409 `already_decided`, one after `expires_at` gets 409 `approval_expired`.
        """
        comment = data.comment if data else None
        return Data(await service.decide(context, approval_id, "approved", comment))

    @post(
        "/{approval_id:str}/reject",
        summary="Reject a request",
        needs="approvals:decide",
        status_code=200,
    )
    async def reject(
        self, context: Context, approval_id: Id, data: JSONBody[Decision | None] = None
    ) -> Data[ApprovalView]:
        """The same rules as for approving."""
        comment = data.comment if data else None
        return Data(await service.decide(context, approval_id, "rejected", comment))


class ApprovalLinkController(Controller):
    path = "/api/v1/public/approvals"
    tags = ["Approvals"]

    @post(
        "/look-up",
        summary="Look up the approval of a link",
        status_code=200,
        public=True,
        errors=(404, 409),
        idempotent=False,
    )
    async def look_up_approval(
        self, tx: Tx, services: Services, data: JSONBody[LookUp]
    ) -> Data[LinkedApproval]:
        """With the token of a link that was mailed to one of those who are asked. A token that is
        not valid, and one of a user who may no longer decide, gets 404 `approval_link_not_found`;
        an expired one gets 409 `approval_expired`.
        """
        return Data(await links.look_up(tx, services, data.token))

    @post(
        "/decide",
        summary="Decide by a link",
        status_code=200,
        public=True,
        errors=(404, 409),
        idempotent=False,
    )
    async def decide_by_link(
        self, tx: Tx, services: Services, data: JSONBody[LinkDecision]
    ) -> Data[LinkedApproval]:
        """As the user to whom the link was mailed, with the same rules as for approving. The link
        works until somebody has decided.
        """
        return Data(await links.decide(tx, services, data.token, data.decision, data.comment))
