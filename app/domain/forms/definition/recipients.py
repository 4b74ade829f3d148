"""Who gets mails about submissions: a verified member of the tenant, or an address whose owner has
agreed by a link. Otherwise a form could mail anybody in the name of this instance.
"""

from datetime import timedelta
from typing import Final

from app.domain.identity.accounts import api as accounts
from app.domain.platform.mail import api as mail
from app.kit import clock, email_addresses
from app.kit.errors import Invalid
from app.kit.views import Done
from app.security import throttle, tokens
from app.security.throttle import Subject
from app.services import Services
from db.session import ALL_TENANTS, Tx

from . import recipient_queries as queries

_LIFETIME: Final = timedelta(days=7)


async def request_confirmation(
    tx: Tx, services: Services, tenant_id: str, address: str, asker_id: str | None
) -> None:
    """Mails a link to an address that is not confirmed, unless one that was mailed still holds."""
    row = await queries.find(tx, tenant_id, address)
    if row["is_allowed"]:
        return
    if row["expires_at"] is None or row["expires_at"] <= clock.now():
        await _mail_link(tx, services, tenant_id, address, asker_id)


async def is_allowed(
    tx: Tx, services: Services, tenant_id: str, address: str, asker_id: str | None
) -> bool:
    """True when the address may get mails. One that no link was ever mailed to gets a link, such as
    that of a form from before addresses were confirmed, or of a member who left.
    """
    row = await queries.find(tx, tenant_id, address)
    if row["is_allowed"]:
        return True
    if not row["is_known"]:
        await _mail_link(tx, services, tenant_id, address, asker_id)
    return False


async def _mail_link(
    tx: Tx, services: Services, tenant_id: str, address: str, asker_id: str | None
) -> None:
    """Does nothing when the mailbox got many, also from other tenants, or the tenant sent many: the
    form is saved all the same, and the next time it is saved tries again.
    """
    subjects = [
        Subject(throttle.MAIL, f"confirm {email_addresses.mailbox(address)}"),
        Subject(throttle.CONFIRMATION, tenant_id),
    ]
    attempt = await throttle.record_attempt(tx, subjects, succeeded=False)
    if attempt.problem is not None:
        return
    token = tokens.new_secret()
    expires_at = clock.now() + _LIFETIME
    await queries.ask(tx, tenant_id, address, tokens.hash_secret(token), expires_at)
    asker = await accounts.find_email(tx, tenant_id, asker_id) if asker_id else None
    url = f"{services.settings.public_url}/confirm-recipient?token={token}"
    # No text of the tenant: its users choose the address.
    content = mail.render("form_recipient", asker=asker, url=url, days=_LIFETIME.days)
    await mail.queue(tx, services.keyring, tenant_id=tenant_id, recipient=address, content=content)


async def confirm(tx: Tx, token: str) -> Done:
    tx.set_scope(ALL_TENANTS)
    address = await queries.confirm(tx, tokens.hash_secret(token), clock.now())
    if address is None:
        raise Invalid.field("token", "is not valid: unknown, used or expired")
    return Done(f"Submissions of forms will be mailed to {address}")
