from typing import Final

from app.domain.area import Area, PeriodicTask
from app.domain.forms import conversations, erasure, uploads
from app.domain.forms.events import (
    FormCreated,
    FormDeleted,
    FormPublished,
    FormUpdated,
    SubmissionCreated,
    SubmissionUpdated,
)
from app.domain.forms.live import FormDefinitions
from app.domain.forms.upload_limits import SenderLimit
from app.domain.forms.view_counter import ViewCounter
from app.domain.forms.wake_pace import WakePace
from app.domain.forms.work_kinds import ERASE, PROCESS, SEND_DIGEST
from app.security.permissions import DEVELOPERS, EVERYBODY, USERS, Permission
from db.retention import CASCADE_BATCH, RetentionRule
from db.storage_quota import CountedTable, UncountedTable

_EXPIRED_CONVERSATIONS = """
(SELECT id FROM form_conversations WHERE expires_at < now() ORDER BY expires_at LIMIT 100) c
"""

AREA: Final = Area(
    name="forms",
    events=(
        FormCreated,
        FormUpdated,
        FormDeleted,
        FormPublished,
        SubmissionCreated,
        SubmissionUpdated,
    ),
    permissions=(
        Permission("forms:read", "See forms, without submissions", EVERYBODY),
        Permission("forms:write", "Create and change forms", DEVELOPERS),
        Permission("forms:delete", "Delete forms and submissions", DEVELOPERS),
        Permission("forms:submit", "Submit forms", USERS),
        Permission(
            "submissions:read", "Read submissions, their files, analytics and exports", DEVELOPERS
        ),
    ),
    work_kinds=(PROCESS, SEND_DIGEST, ERASE),
    periodic_tasks=(
        PeriodicTask(30.0, erasure.delete_forms),
        PeriodicTask(60.0, uploads.delete_expired),
        PeriodicTask(600.0, conversations.abandon_old),
    ),
    shared=lambda services: (
        FormDefinitions(),
        SenderLimit(),
        ViewCounter(services.db),
        WakePace(),
    ),
    retention=(
        # What a form has is deleted before it, by tasks of their own.
        RetentionRule(
            "forms",
            "t.deleted_at < now() - interval '1 minute' "
            "AND NOT EXISTS (SELECT 1 FROM form_submissions s WHERE s.form_id = t.id) "
            "AND NOT EXISTS (SELECT 1 FROM form_conversations c WHERE c.form_id = t.id) "
            "AND NOT EXISTS (SELECT 1 FROM form_drafts f WHERE f.form_id = t.id) "
            "AND NOT EXISTS (SELECT 1 FROM form_uploads u WHERE u.form_id = t.id)",
            order_by="t.deleted_at",
            batch=CASCADE_BATCH,
        ),
        # Analytics count unfinished drafts and conversations also after their answers are deleted.
        RetentionRule(
            "form_drafts",
            "t.token_hash IS NOT NULL AND t.expires_at < now()",
            order_by="t.expires_at",
            clears="token_hash = NULL, data = '{}'",
        ),
        RetentionRule(
            "form_messages",
            "t.conversation_id = c.id",
            order_by="t.position",
            per=_EXPIRED_CONVERSATIONS,
        ),
        RetentionRule(
            "form_conversations",
            "t.expires_at < now() "
            "AND NOT EXISTS (SELECT 1 FROM form_messages m WHERE m.conversation_id = t.id)",
            order_by="t.expires_at",
            clears="expires_at = NULL, data = '{}', skipped = '{}'",
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
        CountedTable(
            "form_conversations",
            "forms",
            "octet_length(t.data::text)",
            changes="OLD.data::text <> NEW.data::text",
        ),
        CountedTable("form_messages", "forms", "octet_length(t.content)"),
        CountedTable(
            "form_versions",
            "definitions",
            "octet_length(t.fields::text)",
            changes="OLD.fields::text <> NEW.fields::text",
        ),
        UncountedTable("forms", "at most 1,000 of a tenant; the fields are in the versions"),
        UncountedTable("form_counts", "two numbers"),
        UncountedTable("form_views", "a number for each day"),
        UncountedTable("form_uploads", "the file is counted"),
        UncountedTable("form_recipients", "an address"),
        UncountedTable("form_mail_counts", "three numbers for each form"),
    ),
)
