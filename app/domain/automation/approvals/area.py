from typing import Final

from app.domain.area import Area, AreaJob
from app.security.permissions import DEVELOPERS, USERS, Permission
from db.retention import CASCADE_BATCH, RetentionRule
from db.storage_quota import UncountedTable

from .events import ApprovalApproved, ApprovalRejected, ApprovalRequested, ApprovalTimeout
from .jobs import expire_approval, on_dead_expiry
from .mails import write_mails
from .service import EXPIRE

AREA: Final = Area(
    name="approvals",
    events=(ApprovalRequested, ApprovalApproved, ApprovalRejected, ApprovalTimeout),
    permissions=(
        Permission("approvals:read", "See all approvals", DEVELOPERS),
        Permission("approvals:decide", "Decide approvals that one is asked for", USERS),
    ),
    jobs=(
        AreaJob(
            EXPIRE,
            expire_approval,
            "End an approval whose time is up",
            on_dead=on_dead_expiry,
            instead="Nothing: the approval has ended all the same",
        ),
    ),
    mails={ApprovalRequested.type: write_mails},
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
            "approvals", "at most 25,000 characters, deleted 90 days after the decision"
        ),
        UncountedTable("approval_assignees", "small, deleted with the approval"),
    ),
)
