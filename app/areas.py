"""The list of all areas. A new area is added here."""

from typing import Final

from app.domain.agents.definition.area import AREA as AGENTS
from app.domain.agents.knowledge.area import AREA as KNOWLEDGE
from app.domain.agents.llm.area import AREA as MODELS
from app.domain.agents.search.area import AREA as SEARCH
from app.domain.agents.sources.area import AREA as SOURCES
from app.domain.agents.tools.area import AREA as TOOLS
from app.domain.agents.usage.area import AREA as USAGE
from app.domain.agents.vault.area import AREA as VAULT
from app.domain.area import Areas
from app.domain.automation.approvals.area import AREA as APPROVALS
from app.domain.automation.incoming.area import AREA as INCOMING
from app.domain.automation.subscriptions.area import AREA as SUBSCRIPTIONS
from app.domain.automation.workflows.area import AREA as WORKFLOWS
from app.domain.conversations.chat.area import AREA as CHAT
from app.domain.conversations.embed.area import AREA as EMBED
from app.domain.conversations.speech.area import AREA as SPEECH
from app.domain.data.tables.area import AREA as TABLES
from app.domain.forms.conversation.area import AREA as FORM_CONVERSATIONS
from app.domain.forms.definition.area import AREA as FORMS
from app.domain.forms.submissions.area import AREA as FORM_SUBMISSIONS
from app.domain.identity.accounts.area import AREA as ACCOUNTS
from app.domain.identity.console.area import AREA as CONSOLE
from app.domain.identity.mfa.area import AREA as MFA
from app.domain.identity.roles.area import AREA as ROLES
from app.domain.identity.saved_views.area import AREA as SAVED_VIEWS
from app.domain.identity.service_keys.area import AREA as SERVICE_KEYS
from app.domain.identity.tenants.area import AREA as TENANTS
from app.domain.messaging.deliveries.area import AREA as DELIVERIES
from app.domain.messaging.notifications.area import AREA as NOTIFICATIONS
from app.domain.messaging.outbox.area import AREA as OUTBOX
from app.domain.messaging.webhooks.area import AREA as WEBHOOKS
from app.domain.platform.drafts.area import AREA as DRAFTS
from app.domain.platform.events.area import AREA as EVENTS
from app.domain.platform.files.area import AREA as FILES
from app.domain.platform.history.area import AREA as HISTORY
from app.domain.platform.mail.area import AREA as MAIL
from app.domain.platform.settings.area import AREA as SETTINGS
from app.domain.platform.storage.area import AREA as STORAGE
from app.domain.platform.work.area import AREA as WORK

AREAS: Final = Areas(
    [
        TENANTS,
        ACCOUNTS,
        MFA,
        ROLES,
        CONSOLE,
        SERVICE_KEYS,
        SAVED_VIEWS,
        MAIL,
        AGENTS,
        DRAFTS,
        CHAT,
        SPEECH,
        USAGE,
        EMBED,
        MODELS,
        # Before the work on documents, which a sync stops while it holds its own.
        SOURCES,
        KNOWLEDGE,
        STORAGE,
        FILES,
        TABLES,
        VAULT,
        TOOLS,
        SEARCH,
        EVENTS,
        HISTORY,
        WORK,
        SETTINGS,
        OUTBOX,
        DELIVERIES,
        WEBHOOKS,
        INCOMING,
        NOTIFICATIONS,
        SUBSCRIPTIONS,
        APPROVALS,
        WORKFLOWS,
        FORMS,
        FORM_SUBMISSIONS,
        FORM_CONVERSATIONS,
    ]
)
