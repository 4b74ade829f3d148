"""The types of nodes. A new one is a file beside this one and a row here."""

from typing import Final

from .agent import AgentNode
from .approval import ApprovalNode
from .condition import ConditionNode
from .data_table import DataTableNode
from .delay import DelayNode
from .notification import NotificationNode
from .protocol import NodeTypes
from .tool import ToolNode
from .transform import TransformNode
from .workflow import WorkflowNode

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
