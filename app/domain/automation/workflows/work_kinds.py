from typing import Final

from app.jobs.work import WorkKind

# Runs one attempt of a node, or ends its wait. Its ref_id is `<id of the node's row>:<attempt>`, in
# the second case with `:timer` after it.
# One evaluation of a tenant runs at a time, so that more slots of one tenant would mostly wait.
RUN_NODE: Final = WorkKind("workflows.node", "workflows", timeout_seconds=120, per_tenant=8)
# Stops what the nodes of an ended execution still wait for.
STOP: Final = WorkKind("workflows.stop", "default")
# Starts executions of a tenant that wait for a free slot.
START: Final = WorkKind("workflows.start", "default")
# Fails an execution that could not begin.
FAIL_START: Final = WorkKind("workflows.fail_start", "default")
# Cancels the executions of a deleted workflow.
CANCEL_ALL: Final = WorkKind("workflows.cancel_all", "default", timeout_seconds=600)
