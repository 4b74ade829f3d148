"""Finds users for other areas."""

from app.kit import email_addresses
from app.kit.errors import Invalid
from db.fast import Row
from db.session import Tx

from . import queries


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
    email, email_verified and timezone. Without ids it lists all users of the tenant, or those of a
    role, whose e-mail address is verified. With `super_admins`, `user_ids` may name those of other
    tenants. The rows are locked against deletion.
    """
    return await queries.list_contacts(
        tx, tenant_id, user_ids, role, after, limit, super_admins=super_admins
    )


def validate_email(field: str, text: str) -> str:
    """Returns the normalized address. Raises Invalid for `field` when mail cannot be sent to it."""
    try:
        return email_addresses.normalize(text)
    except ValueError as problem:
        raise Invalid.field(field, str(problem)) from None
