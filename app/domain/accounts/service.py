"""What other areas use of accounts."""

from app.domain.accounts import queries
from app.domain.accounts.mails import notice as mail_notice
from app.domain.accounts.one_time import MFA, count_try
from app.domain.accounts.one_time import owner as token_owner
from app.domain.accounts.one_time import use as use_token
from app.domain.accounts.pictures import FOLDER as PICTURE_FOLDER
from app.domain.accounts.pictures import delete_picture
from app.domain.accounts.sessions import (
    forget_code_shown,
    mark_code_shown,
    require_code_shown,
)
from app.domain.accounts.sign_in import begin_session, emit_blocked
from app.domain.accounts.users import lock_own, lock_user_to_change, set_mfa
from db.session import Tx

__all__ = [
    "MFA",
    "PICTURE_FOLDER",
    "address_of",
    "avatar_type",
    "begin_session",
    "count_try",
    "delete_picture",
    "emit_blocked",
    "find_profile",
    "find_unknown",
    "forget_code_shown",
    "lock_own",
    "lock_user",
    "lock_user_to_change",
    "mail_notice",
    "mark_code_shown",
    "require_code_shown",
    "set_avatar",
    "set_mfa",
    "token_owner",
    "update_profile",
    "use_token",
]

find_profile, update_profile = queries.find_profile, queries.update_profile
set_avatar, avatar_type = queries.set_avatar, queries.avatar_type
lock_user = queries.lock_user


async def address_of(tx: Tx, tenant_id: str, user_id: str | None) -> str | None:
    """Where to mail a user who may still sign in: of the tenant, or a super_admin."""
    return await queries.address_of(tx, tenant_id, user_id) if user_id else None


async def find_unknown(tx: Tx, tenant_id: str, user_ids: list[str]) -> list[str]:
    """Those of them that the tenant does not have."""
    existing = await queries.existing(tx, tenant_id, user_ids)
    return [user_id for user_id in user_ids if user_id not in existing]
