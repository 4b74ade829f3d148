"""What other areas may call."""

from .queries import join_sql
from .service import (
    Draft,
    LiveRecord,
    delete,
    describe,
    find,
    read,
    require_current,
    require_saved_at,
    save,
)
