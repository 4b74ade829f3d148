"""The types of nodes. A new one is a file beside this one and a row here."""

from typing import Final

from app.domain.automation.workflows.nodes.agent import AgentNode
from app.domain.automation.workflows.nodes.approval import ApprovalNode
from app.domain.automation.workflows.nodes.condition import ConditionNode
from app.domain.automation.workflows.nodes.data_table import DataTableNode
from app.domain.automation.workflows.nodes.delay import DelayNode
from app.domain.automation.workflows.nodes.notification import NotificationNode
from app.domain.automation.workflows.nodes.protocol import NodeTypes
from app.domain.automation.workflows.nodes.tool import ToolNode
from app.domain.automation.workflows.nodes.transform import TransformNode
from app.domain.automation.workflows.nodes.workflow import WorkflowNode

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
