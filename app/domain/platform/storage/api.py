"""What other areas may call."""

from .queries import COUNT_FILE, RELEASE_FILES, lock_limit
from .service import check_file, explain_full, get_limit, get_usage, hide_figures, require_space
