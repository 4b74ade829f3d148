"""What other areas may call."""

from app.domain.automation.workflows.execution_queries import list_started
from app.domain.automation.workflows.queries import exists
from app.domain.automation.workflows.service import (
    delete_ended,
    find_result,
    require,
)
from app.domain.automation.workflows.starting import NewExecution, accept
