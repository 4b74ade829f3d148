"""The functions of accounts that other areas call."""

from app.domain.accounts import queries
from app.domain.accounts.account_mails import mail_notice
from app.domain.accounts.one_time_tokens import MFA, count_try, find_token, use_token
from app.domain.accounts.pictures import delete_picture, list_picture_paths
from app.domain.accounts.sessions import (
    forget_code_shown,
    mark_code_shown,
    require_code_shown,
)
from app.domain.accounts.sign_in import begin_session, emit_sign_in_blocked
from app.domain.accounts.users import lock_own_user, lock_user_to_change, set_mfa
from db.fast import Row
from db.session import Tx

__all__ = [
    "MFA",
    "begin_session",
    "count_contacts",
    "count_try",
    "delete_picture",
    "emit_sign_in_blocked",
    "find_avatar",
    "find_email",
    "find_profile",
    "find_token",
    "find_unknown_ids",
    "forget_code_shown",
    "list_contacts",
    "list_picture_paths",
    "lock_own_user",
    "lock_user",
    "lock_user_to_change",
    "mail_notice",
    "mark_code_shown",
    "member_sql",
    "require_code_shown",
    "set_avatar",
    "set_mfa",
    "update_profile",
    "use_token",
]

find_profile, update_profile = queries.find_profile, queries.update_profile
set_avatar, find_avatar = queries.set_avatar, queries.find_avatar
lock_user = queries.lock_user
count_contacts = queries.count_contacts
member_sql = queries.member_sql


async def find_email(
    tx: Tx, tenant_id: str, user_id: str, *, is_verified: bool = False
) -> str | None:
    """Returns the e-mail of an active user of the tenant, or of an active super_admin. With
    `is_verified`, only one that the user has verified.
    """
    row = await queries.find_email(tx, tenant_id, user_id)
    return row["email"] if row is not None and (row["email_verified"] or not is_verified) else None


async def find_unknown_ids(tx: Tx, tenant_id: str, user_ids: list[str]) -> list[str]:
    """Returns the ids that belong to no user of the tenant."""
    existing_ids = await queries.find_existing_ids(tx, tenant_id, user_ids)
    return [user_id for user_id in user_ids if user_id not in existing_ids]


async def list_contacts(
    tx: Tx,
    tenant_id: str,
    *,
    user_ids: list[str] | None = None,
    role: str | None = None,
    after: str = "",
    limit: int,
    super_admins: bool = False,
) -> list[Row]:
    """Returns active users in the order of their ids, from the one after `after` on: id, tenant_id,
    email and timezone. Without ids it lists all users of the tenant, or those of a role, whose
    e-mail address is verified. With `super_admins`, `user_ids` may name those of other tenants. The
    rows are locked against deletion.
    """
    return await queries.list_contacts(
        tx, tenant_id, user_ids, role, after, limit, super_admins=super_admins
    )
