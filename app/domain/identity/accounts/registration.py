"""Registration, with or without an invitation, and verification of the e-mail address."""

from collections.abc import Awaitable, Callable

from msgspec import UNSET

from app.domain.identity.tenants import api as tenants
from app.domain.platform.events import api as events
from app.kit import clock, trace
from app.kit.errors import Conflict, Invalid, Problem
from app.kit.ids import new_id
from app.kit.views import Done
from app.security import passwords, throttle, tokens
from app.security.principal import Principal
from app.security.throttle import Subject
from app.services import Services
from db.models import User
from db.session import ALL_TENANTS, Tx

from . import account_mails, invitation_queries, one_time_tokens, queries, service, sessions
from .errors import SignupClosed
from .events import EmailVerified, UserRegistered
from .schemas import Register, Registered
from .users import lock_own_user

_EMAIL_TAKEN = "An account with this e-mail already exists"


async def register(
    services: Services,
    data: Register,
    store_answer: Callable[[Tx, Registered], Awaitable[None]],
) -> Registered:
    """No transaction is open while the password is hashed: others wait for the hashing threads,
    and each would hold a connection. `store_answer` runs in the transaction of the new user.
    """
    email = _validate_body(data)
    if data.invitation_token is UNSET and not services.settings.is_signup_open:
        raise SignupClosed(
            "Sign-up is closed here. Ask an administrator for an invitation",
            details={"required": "invitation_token", "your_role": "anonymous"},
        )
    password_hash = await passwords.hash_password(data.password)
    async with services.db.tx(None) as tx:
        answer = await _add_user(tx, services, data, email, password_hash)
        await store_answer(tx, answer)
    return answer


async def _add_user(
    tx: Tx, services: Services, data: Register, email: str, password_hash: str
) -> Registered:
    user = await _build_user(tx, data, email, password_hash)
    if await queries.find_user_by_email(tx, email) is not None:
        raise Conflict(_EMAIL_TAKEN)
    if not user.email_verified:
        await account_mails.count_mail(tx, "register", email)
    await invitation_queries.void_to(tx, email, clock.now(), None)
    trace.current().actor_id = user.id
    session = await tx.session()
    session.add(user)
    await session.flush()
    is_invited = user.email_verified
    event_id = await _emit_user_registered(tx, user)
    if not is_invited:
        row = {"id": user.id, "tenant_id": user.tenant_id, "email": email}
        await account_mails.mail_verification(tx, services, row, event_id)
    message = "Welcome"
    if not is_invited:
        message = f"Welcome. We sent a mail to {email} to verify the address"
    names = (user.first_name, user.last_name)
    return Registered(user.id, email, *names, user.role, is_invited, message)  # type: ignore[arg-type]


def _validate_body(data: Register) -> str:
    """Returns the normalized e-mail. Raises Invalid with the problems of all fields."""
    problems: list[Problem] = []
    try:
        email = service.validate_email("email", data.email)
    except Invalid as error:
        problems += (error.details or {}).items()
    problem = passwords.find_problem(data.password)
    if problem:
        problems.append(("password", problem))
    Invalid.check(problems)
    return email


async def _build_user(tx: Tx, data: Register, email: str, password_hash: str) -> User:
    tenant_id, role, is_verified = await _find_tenant_and_role(tx, data, email)
    tx.set_scope(tenant_id)
    return User(
        id=new_id("usr"),
        tenant_id=tenant_id,
        email=email,
        first_name=data.first_name.strip(),
        last_name=data.last_name.strip(),
        password_hash=password_hash,
        role=role,
        email_verified=is_verified,
    )


async def _find_tenant_and_role(tx: Tx, data: Register, email: str) -> tuple[str, str, bool]:
    """Returns tenant id, role, and whether the e-mail is verified by an invitation."""
    if data.invitation_token is UNSET:
        return await tenants.get_default_id(tx), "agent_user", False
    token_hash = tokens.hash_secret(data.invitation_token)
    invitation = await invitation_queries.use(tx, token_hash, email, clock.now())
    if invitation is None:
        raise Invalid.field(
            "invitation_token",
            "is not valid for this e-mail: unknown, used or expired; ask for a new invitation",
        )
    return invitation["tenant_id"], invitation["role"], True


async def _emit_user_registered(tx: Tx, user: User) -> str:
    registered = UserRegistered(user.id, user.email, user.role, invited=user.email_verified)
    return await events.emit(tx, registered, tenant_id=user.tenant_id)


async def verify_email(tx: Tx, services: Services, token: str) -> Done:
    tx.set_scope(ALL_TENANTS)
    user = await one_time_tokens.redeem_token(tx, one_time_tokens.VERIFY_EMAIL, token)
    trace.current().actor_id = user["id"]
    tenant_id, user_id = user["tenant_id"], user["id"]
    if await queries.set_email_verified(tx, tenant_id, user_id, clock.now()):
        await sessions.verify_all(tx, services.session_cache, tenant_id, user_id)
        await events.emit(tx, EmailVerified(user_id), tenant_id=tenant_id)
    return Done("The e-mail address is verified")


async def resend_verification(tx: Tx, services: Services, principal: Principal) -> Done:
    user = await lock_own_user(tx, principal)
    if user["email_verified"]:
        raise Conflict("This e-mail address is already verified")
    subjects = [Subject(throttle.MAIL, f"verify {user['id']}")]
    await throttle.refuse_blocked(tx, subjects)
    await throttle.record_attempt(tx, subjects, succeeded=False)
    await account_mails.mail_verification(tx, services, user, None)
    return Done(f"We sent a mail to {user['email']}")
