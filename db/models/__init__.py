"""All mapped classes, so that Alembic and the session know them; one file per area."""

from db.models.accounts import Invitation, OneTimeToken, Session, User
from db.models.agents import Agent, AgentVersion, SubAgent
from db.models.approvals import Approval, ApprovalAssignee
from db.models.chat import (
    ChatJob,
    Conversation,
    ConversationEntry,
    ConversationRead,
    ConversationReader,
)
from db.models.deliveries import Delivery, DeliveryAttempt, Webhook
from db.models.drafts import RecordDraft
from db.models.embed import EmbedKey, EmbedKeyUsage
from db.models.events import EventLog, RequestSpan
from db.models.files import File
from db.models.form_conversations import FormConversation, FormMessage
from db.models.form_submissions import (
    FormCount,
    FormDraft,
    FormMailCount,
    FormSubmission,
    FormUpload,
    FormViewCount,
)
from db.models.forms import Form, FormRecipient, FormVersion
from db.models.history import HistoryEntry
from db.models.incoming import IncomingPayload, IncomingWebhook
from db.models.instance import FailureCount, IdempotencyKey, InstanceState
from db.models.knowledge import Document, KnowledgeBase
from db.models.llm import ProviderKey
from db.models.mail import MailMessage
from db.models.mfa import MfaDevice, RecoveryCode
from db.models.notifications import (
    Notification,
    NotificationChannel,
    NotificationChannelDay,
    NotificationDelivery,
    NotificationDigest,
    NotificationDigestItem,
    NotificationLogEntry,
    NotificationMessage,
    NotificationPreferences,
)
from db.models.roles import RoleGrant
from db.models.saved_views import SavedView
from db.models.search import WebSearch, WebSearchConfig
from db.models.service_keys import ServiceKey
from db.models.sources import DocumentSource, SourceEntry
from db.models.speech import SpeechJob
from db.models.storage import StorageChange, StorageKind, StorageUsage
from db.models.subscriptions import EventSubscription
from db.models.tables import (
    DataImport,
    DataImportError,
    DataRow,
    DataTable,
    DataTableCount,
)
from db.models.tenants import Tenant
from db.models.tools import AgentTool, Tool, ToolExecution
from db.models.usage import (
    Usage,
    UsageCallerDay,
    UsageCallerHour,
    UsageCount,
    UsageCountDay,
    UsageCountHour,
    UsageDay,
    UsageHour,
    UsageName,
)
from db.models.vault import Credential, CredentialAccess, CredentialAudit, CredentialAuditChain
from db.models.work import Work
from db.models.workflows import (
    Workflow,
    WorkflowExecution,
    WorkflowNode,
    WorkflowVersion,
)

__all__ = [
    "Agent",
    "AgentTool",
    "AgentVersion",
    "Approval",
    "ApprovalAssignee",
    "ChatJob",
    "Conversation",
    "ConversationEntry",
    "ConversationRead",
    "ConversationReader",
    "Credential",
    "CredentialAccess",
    "CredentialAudit",
    "CredentialAuditChain",
    "DataImport",
    "DataImportError",
    "DataRow",
    "DataTable",
    "DataTableCount",
    "Delivery",
    "DeliveryAttempt",
    "Document",
    "DocumentSource",
    "EmbedKey",
    "EmbedKeyUsage",
    "EventLog",
    "EventSubscription",
    "FailureCount",
    "File",
    "Form",
    "FormConversation",
    "FormCount",
    "FormDraft",
    "FormMailCount",
    "FormMessage",
    "FormRecipient",
    "FormSubmission",
    "FormUpload",
    "FormVersion",
    "FormViewCount",
    "HistoryEntry",
    "IdempotencyKey",
    "IncomingPayload",
    "IncomingWebhook",
    "InstanceState",
    "Invitation",
    "KnowledgeBase",
    "MailMessage",
    "MfaDevice",
    "Notification",
    "NotificationChannel",
    "NotificationChannelDay",
    "NotificationDelivery",
    "NotificationDigest",
    "NotificationDigestItem",
    "NotificationLogEntry",
    "NotificationMessage",
    "NotificationPreferences",
    "OneTimeToken",
    "ProviderKey",
    "RecordDraft",
    "RecoveryCode",
    "RequestSpan",
    "RoleGrant",
    "SavedView",
    "ServiceKey",
    "Session",
    "SourceEntry",
    "SpeechJob",
    "StorageChange",
    "StorageKind",
    "StorageUsage",
    "SubAgent",
    "Tenant",
    "Tool",
    "ToolExecution",
    "Usage",
    "UsageCallerDay",
    "UsageCallerHour",
    "UsageCount",
    "UsageCountDay",
    "UsageCountHour",
    "UsageDay",
    "UsageHour",
    "UsageName",
    "User",
    "WebSearch",
    "WebSearchConfig",
    "Webhook",
    "Work",
    "Workflow",
    "WorkflowExecution",
    "WorkflowNode",
    "WorkflowVersion",
]
