from typing import Final

from app.domain.area import Area
from app.security.permissions import DEVELOPERS, EVERYBODY, Permission
from db.retention import CASCADE_BATCH, RetentionRule
from db.storage_quota import CountedTable, UncountedTable

from .events import FormCreated, FormDeleted, FormPublished, FormUpdated
from .live import FormDefinitions

AREA: Final = Area(
    name="forms",
    events=(FormCreated, FormUpdated, FormDeleted, FormPublished),
    permissions=(
        Permission("forms:read", "See forms, without submissions", EVERYBODY),
        Permission("forms:write", "Create and change forms", DEVELOPERS),
        Permission("forms:delete", "Delete forms and submissions", DEVELOPERS),
    ),
    shared=lambda _services: (FormDefinitions(),),
    retention=(
        # Tasks of their own delete the parts of a form before it.
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
    ),
    tables=(
        CountedTable(
            "form_versions",
            "definitions",
            "octet_length(t.fields::text)",
            changes="OLD.fields::text <> NEW.fields::text",
        ),
        UncountedTable("forms", "at most 1,000 of a tenant; the fields are in the versions"),
        UncountedTable("form_recipients", "an address"),
    ),
)
