from typing import Final

from app.domain.area import Area, AreaJob, PeriodicTask
from app.security.permissions import DEVELOPERS, USERS, Permission
from db.retention import RetentionRule
from db.storage_quota import CountedTable, UncountedTable

from . import erasure, jobs, uploads
from .analytics import ViewCounter
from .events import SubmissionCreated, SubmissionUpdated
from .submitting import WakePace
from .upload_limits import SenderLimit
from .work_kinds import ERASE, PROCESS, SEND_DIGEST

AREA: Final = Area(
    name="form_submissions",
    events=(SubmissionCreated, SubmissionUpdated),
    permissions=(
        Permission("forms:submit", "Submit forms", USERS),
        Permission(
            "submissions:read", "Read submissions, their files, analytics and exports", DEVELOPERS
        ),
    ),
    jobs=(
        AreaJob(
            PROCESS,
            jobs.process_submission,
            "Process a form submission",
            on_dead=jobs.on_dead_submission,
            on_retry=jobs.on_retry_submission,
        ),
        AreaJob(SEND_DIGEST, jobs.send_form_digest, "Mail a digest of submissions"),
        AreaJob(ERASE, jobs.erase_submission, "Erase what a deleted submission caused"),
    ),
    periodic_tasks=(
        PeriodicTask(30.0, erasure.delete_forms),
        PeriodicTask(60.0, uploads.delete_expired),
    ),
    shared=lambda services: (SenderLimit(), ViewCounter(services.db), WakePace()),
    retention=(
        # Analytics count unfinished drafts also after their answers are deleted.
        RetentionRule(
            "form_drafts",
            "t.token_hash IS NOT NULL AND t.expires_at < now()",
            order_by="t.expires_at",
            clears="token_hash = NULL, data = '{}'",
        ),
    ),
    tables=(
        CountedTable(
            "form_submissions",
            "forms",
            "octet_length(t.data::text) + octet_length(t.custom_metadata::text)",
        ),
        CountedTable(
            "form_drafts",
            "forms",
            "octet_length(t.data::text)",
            changes="OLD.data::text <> NEW.data::text",
        ),
        UncountedTable("form_counts", "two numbers"),
        UncountedTable("form_views", "a number for each day"),
        UncountedTable("form_uploads", "the file is counted"),
        UncountedTable("form_mail_counts", "three numbers for each form"),
    ),
)
