"""The work of this area: syncing sources, and applying the changes that were found."""

from typing import Final

from app.jobs.work import WorkKind

# Looks at a source; ref_id is its id. A tenant has few of them at a time, since each asks servers
# of others and reads for minutes.
SYNC: Final = WorkKind(
    "sources.sync", "sources", timeout_seconds=900, retry_delays=(30, 300), per_tenant=2
)
# Applies the changes that wait for a review; ref_id is the id of the source.
APPLY: Final = WorkKind("sources.apply", timeout_seconds=900, retry_delays=(10, 60, 300))
