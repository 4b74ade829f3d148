from typing import Final

from app.domain.approvals import service
from app.domain.approvals.events import (
    ApprovalApproved,
    ApprovalRejected,
    ApprovalRequested,
    ApprovalTimeout,
)
from app.domain.area import Area
from app.security.permissions import DEVELOPERS, USERS, Permission
from db.retention import CASCADE_BATCH, RetentionRule
from db.storage_quota import UncountedTable

AREA: Final = Area(
    name="approvals",
    events=(ApprovalRequested, ApprovalApproved, ApprovalRejected, ApprovalTimeout),
    permissions=(
        Permission("approvals:read", "See all approvals", DEVELOPERS),
        Permission("approvals:decide", "Decide approvals that one is asked for", USERS),
    ),
    work_kinds=(service.EXPIRE,),
    retention=(
        # A pending approval has no such time.
        RetentionRule(
            "approvals",
            "t.decided_at < now() - interval '90 days'",
            order_by="t.decided_at",
            batch=CASCADE_BATCH,
        ),
    ),
    tables=(
        UncountedTable(
            "approvals", "at most 10,000 characters, deleted 90 days after the decision"
        ),
        UncountedTable("approval_assignees", "small, deleted with the approval"),
    ),
)
