"""What other areas may call."""

from app.domain.platform.storage.queries import COUNT_FILE, RELEASE_FILES, lock_limit
from app.domain.platform.storage.service import (
    check_file,
    explain_full,
    get_limit,
    get_usage,
    hide_figures,
    require_space,
)
