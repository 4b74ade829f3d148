"""One file per aggregate; this list is what Alembic and the session know."""

from db.models.accounts import Invitation, RoleGrant, Session, User
from db.models.events import EventLog
from db.models.instance import IdempotencyKey, InstanceState
from db.models.mail import MailMessage
from db.models.tenants import Tenant
from db.models.work import Work

__all__ = [
    "EventLog",
    "IdempotencyKey",
    "InstanceState",
    "Invitation",
    "MailMessage",
    "RoleGrant",
    "Session",
    "Tenant",
    "User",
    "Work",
]
