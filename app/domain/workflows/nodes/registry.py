"""The types of nodes. A new one is a file beside this one and a row here."""

from typing import Final

from app.domain.workflows.nodes.agent import AgentNode
from app.domain.workflows.nodes.approval import ApprovalNode
from app.domain.workflows.nodes.condition import ConditionNode
from app.domain.workflows.nodes.data_table import DataTableNode
from app.domain.workflows.nodes.delay import DelayNode
from app.domain.workflows.nodes.notification import NotificationNode
from app.domain.workflows.nodes.protocol import NodeTypes
from app.domain.workflows.nodes.tool import ToolNode
from app.domain.workflows.nodes.transform import TransformNode
from app.domain.workflows.nodes.workflow import WorkflowNode

NODE_TYPES: Final = NodeTypes(
    (node_type.name, node_type)
    for node_type in (
        AgentNode(),
        ToolNode(),
        ConditionNode(),
        TransformNode(),
        DataTableNode(),
        NotificationNode(),
        DelayNode(),
        ApprovalNode(),
        WorkflowNode(),
    )
)
