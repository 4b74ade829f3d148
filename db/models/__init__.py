"""One file per aggregate; this list is what Alembic and the session know."""

from db.models.accounts import Attempt, Invitation, OneTimeToken, RoleGrant, Session, User
from db.models.events import EventLog
from db.models.instance import IdempotencyKey, InstanceState
from db.models.mail import MailMessage
from db.models.mfa import MfaDevice, RecoveryCode
from db.models.tenants import Tenant
from db.models.work import Work

__all__ = [
    "Attempt",
    "EventLog",
    "IdempotencyKey",
    "InstanceState",
    "Invitation",
    "MailMessage",
    "MfaDevice",
    "OneTimeToken",
    "RecoveryCode",
    "RoleGrant",
    "Session",
    "Tenant",
    "User",
    "Work",
]
