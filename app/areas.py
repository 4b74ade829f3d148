"""The list of all areas. A new area is added here."""

from typing import Final

from app.domain.accounts.area import AREA as ACCOUNTS
from app.domain.agents.area import AREA as AGENTS
from app.domain.approvals.area import AREA as APPROVALS
from app.domain.area import Areas
from app.domain.chat.area import AREA as CHAT
from app.domain.deliveries.area import AREA as DELIVERIES
from app.domain.embed.area import AREA as EMBED
from app.domain.events.area import AREA as EVENTS
from app.domain.files.area import AREA as FILES
from app.domain.forms.area import AREA as FORMS
from app.domain.incoming.area import AREA as INCOMING
from app.domain.knowledge.area import AREA as KNOWLEDGE
from app.domain.mail.area import AREA as MAIL
from app.domain.mfa.area import AREA as MFA
from app.domain.models.area import AREA as MODELS
from app.domain.notifications.area import AREA as NOTIFICATIONS
from app.domain.roles.area import AREA as ROLES
from app.domain.search.area import AREA as SEARCH
from app.domain.speech.area import AREA as SPEECH
from app.domain.storage.area import AREA as STORAGE
from app.domain.subscriptions.area import AREA as SUBSCRIPTIONS
from app.domain.tables.area import AREA as TABLES
from app.domain.tenants.area import AREA as TENANTS
from app.domain.tools.area import AREA as TOOLS
from app.domain.usage.area import AREA as USAGE
from app.domain.vault.area import AREA as VAULT
from app.domain.webhooks.area import AREA as WEBHOOKS
from app.domain.workflows.area import AREA as WORKFLOWS

AREAS: Final = Areas(
    [
        TENANTS,
        ACCOUNTS,
        MFA,
        ROLES,
        MAIL,
        AGENTS,
        CHAT,
        SPEECH,
        USAGE,
        EMBED,
        MODELS,
        KNOWLEDGE,
        STORAGE,
        FILES,
        TABLES,
        VAULT,
        TOOLS,
        SEARCH,
        EVENTS,
        DELIVERIES,
        WEBHOOKS,
        INCOMING,
        NOTIFICATIONS,
        SUBSCRIPTIONS,
        APPROVALS,
        WORKFLOWS,
        FORMS,
    ]
)
