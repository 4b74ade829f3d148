"""Every event type there is. Each area defines its own beside its rules; this is the list."""

from typing import Final

from app.domain.accounts import events as accounts
from app.domain.agents import events as agents
from app.domain.chat import events as chat
from app.domain.embed import events as embed
from app.domain.events import events as own
from app.domain.events.describe import CATEGORIES, category_of, example_of, schema_of
from app.domain.events.event import Event
from app.domain.forms import events as forms
from app.domain.incoming import events as incoming
from app.domain.mfa import events as mfa
from app.domain.models import events as models
from app.domain.roles import events as roles
from app.domain.subscriptions import events as subscriptions
from app.domain.tables import events as tables
from app.domain.tenants import events as tenants
from app.domain.tools import events as tools
from app.domain.vault import events as vault
from app.domain.webhooks import events as webhooks
from app.domain.workflows import events as workflows

__all__ = ["CATALOGUE", "CATEGORIES", "category_of", "example_of", "schema_of"]

CATALOGUE: Final[dict[str, type[Event]]] = {
    event.type: event
    for event in (
        tenants.TenantCreated,
        tenants.TenantUpdated,
        tenants.TenantDeleted,
        accounts.UserInvited,
        accounts.InvitationRevoked,
        accounts.UserRegistered,
        accounts.EmailVerified,
        accounts.UserSignedIn,
        accounts.SignInBlocked,
        accounts.UserSignedOut,
        accounts.SessionRevoked,
        accounts.PasswordResetRequested,
        accounts.PasswordChanged,
        accounts.RoleChanged,
        accounts.UserUpdated,
        accounts.UserDeactivated,
        accounts.UserReactivated,
        accounts.UserDeleted,
        mfa.MfaEnabled,
        mfa.MfaDeviceAdded,
        mfa.MfaDeviceRemoved,
        mfa.MfaDisabled,
        mfa.MfaReset,
        mfa.RecoveryCodeUsed,
        mfa.RecoveryCodesReplaced,
        roles.RolePermissionsChanged,
        agents.AgentCreated,
        agents.AgentUpdated,
        agents.AgentPublished,
        agents.AgentDeleted,
        chat.ChatStarted,
        chat.ChatMessage,
        chat.ChatCompleted,
        embed.EmbedKeyCreated,
        embed.EmbedKeyRevoked,
        models.ProviderKeyCreated,
        models.ProviderKeyDeleted,
        vault.CredentialCreated,
        vault.CredentialUpdated,
        vault.CredentialDeleted,
        vault.CredentialInvalid,
        tools.ToolCreated,
        tools.ToolUpdated,
        tools.ToolDeleted,
        webhooks.WebhookCreated,
        webhooks.WebhookUpdated,
        webhooks.WebhookDeleted,
        webhooks.WebhookDisabled,
        incoming.IncomingWebhookCreated,
        incoming.IncomingWebhookUpdated,
        incoming.IncomingWebhookDeleted,
        incoming.IncomingWebhookReceived,
        subscriptions.SubscriptionCreated,
        subscriptions.SubscriptionUpdated,
        subscriptions.SubscriptionDeleted,
        workflows.WorkflowCreated,
        workflows.WorkflowUpdated,
        workflows.WorkflowDeleted,
        workflows.WorkflowPublished,
        workflows.ExecutionStarted,
        workflows.ExecutionCompleted,
        workflows.ExecutionFailed,
        workflows.NodeCompleted,
        workflows.ApprovalRequested,
        workflows.ApprovalApproved,
        workflows.ApprovalRejected,
        workflows.ApprovalTimedOut,
        forms.FormCreated,
        forms.FormUpdated,
        forms.FormDeleted,
        forms.FormPublished,
        forms.SubmissionCreated,
        forms.SubmissionUpdated,
        tables.TableCreated,
        tables.TableUpdated,
        tables.TableDeleted,
        tables.RowCreated,
        tables.RowUpdated,
        tables.RowDeleted,
        own.TriedOut,
        own.WorkDead,
        own.ChainStopped,
        own.RateLimitExceeded,
    )
}
