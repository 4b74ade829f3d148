"""What other areas may call."""

from .execution_queries import list_started
from .queries import exists
from .service import delete_ended, find_result, require
from .starting import NewExecution, accept
