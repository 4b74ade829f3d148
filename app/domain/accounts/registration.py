"""Coming in: registering, with an invitation or without, and verifying the e-mail address."""

from msgspec import UNSET

from app.domain.accounts import emails, mails, one_time, queries
from app.domain.accounts.errors import SignupClosed
from app.domain.accounts.events import EmailVerified, UserRegistered
from app.domain.accounts.schemas import Register, Registered
from app.domain.accounts.users import lock_own
from app.domain.events import service as events
from app.domain.tenants import service as tenants
from app.http.responses import Done
from app.kit import clock, trace
from app.kit.errors import Conflict, Invalid
from app.kit.ids import new_id
from app.security import passwords, throttle, tokens
from app.security.principal import Principal
from app.security.throttle import Subject
from app.services import Services
from db.models import User
from db.session import ALL_TENANTS, Tx

_TAKEN = "Somebody with this e-mail already has an account"


async def register(tx: Tx, services: Services, data: Register) -> Registered:
    email = _validate(data)
    if data.invitation_token is UNSET and not services.settings.allow_signup:
        raise SignupClosed(
            "Nobody can register here without an invitation; ask an administrator for one",
            details={"required": "invitation_token", "your_role": "anonymous"},
        )
    hashed = await passwords.hash_password(data.password)
    user = await _new_user(tx, data, email, hashed)
    if await queries.by_email(tx, email) is not None:
        raise Conflict(_TAKEN)
    await queries.void_invitations_to(tx, email, clock.now())
    trace.current().actor_id = user.id
    session = await tx.session()
    session.add(user)
    await session.flush()
    invited = user.email_verified
    event_id = await _emit_registered(tx, user)
    if not invited:
        row = {"id": user.id, "tenant_id": user.tenant_id, "email": email}
        await mails.verification(tx, services, row, event_id)
    message = "Welcome" if invited else f"Welcome. We sent a mail to {email} to verify the address"
    names = (user.first_name, user.last_name)
    return Registered(user.id, email, *names, user.role, invited, message)  # type: ignore[arg-type]


def _validate(data: Register) -> str:
    """The address to register, once every field is right; otherwise all that is wrong at once."""
    problems: dict[str, str] = {}
    try:
        email = emails.validate("email", data.email)
    except Invalid as problem:
        problems |= problem.details or {}
    weak = passwords.problem_with(data.password)
    if weak:
        problems["password"] = weak
    if problems:
        raise Invalid.fields(problems)
    return email


async def _new_user(tx: Tx, data: Register, email: str, hashed: str) -> User:
    tenant_id, role, verified = await _find_tenant(tx, data, email)
    tx.enter(tenant_id)
    return User(
        id=new_id("usr"),
        tenant_id=tenant_id,
        email=email,
        first_name=data.first_name.strip(),
        last_name=data.last_name.strip(),
        password_hash=hashed,
        role=role,
        email_verified=verified,
    )


async def _find_tenant(tx: Tx, data: Register, email: str) -> tuple[str, str, bool]:
    """Which tenant, as what, and whether the address is known to be theirs."""
    if data.invitation_token is UNSET:
        return await tenants.default_id(tx), "agent_user", False
    hashed = tokens.secret_hash(data.invitation_token)
    found = await queries.use_invitation(tx, hashed, email, clock.now())
    if found is None:
        raise Invalid.field(
            "invitation_token",
            "is not valid for this e-mail: unknown, used or expired; ask for a new invitation",
        )
    return found["tenant_id"], found["role"], True


async def _emit_registered(tx: Tx, user: User) -> str:
    registered = UserRegistered(user.id, user.email, user.role, invited=user.email_verified)
    return await events.emit(tx, registered, tenant_id=user.tenant_id)


async def verify_email(tx: Tx, token: str) -> Done:
    tx.enter(ALL_TENANTS)
    user = await one_time.user_of(tx, one_time.VERIFY_EMAIL, token)
    trace.current().actor_id = user["id"]
    if await queries.set_verified(tx, user["tenant_id"], user["id"], clock.now()):
        await events.emit(tx, EmailVerified(user["id"]), tenant_id=user["tenant_id"])
    return Done("The e-mail address is verified")


async def resend_verification(tx: Tx, services: Services, principal: Principal) -> Done:
    user = await lock_own(tx, principal)
    if user["email_verified"]:
        raise Conflict("This e-mail address is verified already")
    subjects = [Subject(throttle.MAIL, f"verify {user['id']}")]
    await throttle.refuse_blocked(tx, subjects)
    await throttle.judge(tx, subjects, right=False)
    await mails.verification(tx, services, user, None)
    return Done(f"We sent a mail to {user['email']}")
