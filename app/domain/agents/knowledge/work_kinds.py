"""The work of this area: reading documents, and the upkeep of their tables."""

from typing import Final

from app.jobs.work import WorkKind

# Reads a document; ref_id is its id.
INGEST: Final = WorkKind(
    "knowledge.ingest",
    "ingest",
    timeout_seconds=1800,
    retry_delays=(2, 10, 60, 300),
    per_tenant=2,
)
# Removes a deleted document's chunks and file; ref_id is its id.
REMOVE_DOCUMENT: Final = WorkKind("knowledge.remove_document", timeout_seconds=600)
# Compacts, indexes or rebuilds a table; ref_id is the agent's id.
MAINTAIN: Final = WorkKind("knowledge.maintain", timeout_seconds=7200)
# Encodes passages by sentence encoders; ref_id is the agent's id.
REFINE: Final = WorkKind(
    "knowledge.refine", "refine", timeout_seconds=600, retry_delays=(60, 600), per_tenant=1
)
# Deletes a table that another generation has replaced; ref_id is the table's name.
DROP_TABLE: Final = WorkKind("knowledge.drop_table", timeout_seconds=600)
# Deletes the tables and files of a deleted agent; ref_id is the agent's id.
REMOVE_AGENT: Final = WorkKind("knowledge.remove_agent", timeout_seconds=600)
# Deletes tables and files that nobody needs, and compares all tables with Postgres.
SWEEP: Final = WorkKind("knowledge.sweep", timeout_seconds=1800, retry_delays=(60,))

ALL: Final = (INGEST, REMOVE_DOCUMENT, MAINTAIN, REFINE, DROP_TABLE, REMOVE_AGENT, SWEEP)
