from functools import partial
from typing import Annotated

from litestar import Controller, delete, get, post, put
from litestar.params import JSONBody, QueryParameter

from app.http import idempotency
from app.http.dependencies import (
    Address,
    ClientInfo,
    HttpRequest,
    Id,
    Page,
    Principal,
    Services,
    Tx,
)
from app.http.paging import Search, Sort
from app.http.records import Record, lock_in_order, lock_row
from app.kit.paging import Paged
from app.kit.views import Done

from . import (
    invitations,
    mailed_links,
    own_sessions,
    password,
    registration,
    sign_in,
    users,
)
from .schemas import (
    ChangePassword,
    ChangeRole,
    ForgotPassword,
    InvitationEntry,
    InvitationLink,
    InvitationView,
    Invite,
    Login,
    LookUpInvitation,
    LookUpLink,
    MailedLink,
    MfaRequired,
    Refresh,
    Register,
    Registered,
    ResetPassword,
    Role,
    RoleChanged,
    SessionView,
    SignedIn,
    Status,
    StatusChanged,
    TokenPair,
    Users,
    UserView,
    VerifyEmail,
)
from .user_queries import UserFilter


class AuthController(Controller):
    path = "/auth"
    tags = ["Auth"]

    @post(
        "/register",
        summary="Register an account",
        public=True,
        errors=(403,),
        idempotent="long_running",
    )
    async def register(
        self, request: HttpRequest, services: Services, data: JSONBody[Register]
    ) -> Registered:
        """Joins the default tenant as agent_user, and mails a link to verify the address. Until
        then the account can sign in and manage itself; everything else is 403
        `email_not_verified`. Where sign-up is closed: 403 `signup_closed`.

        With an `invitation_token`, which holds for its address only, joins that tenant with that
        role, and the address is verified.
        """
        store_answer = partial(idempotency.store_answer, request)
        return await registration.register(services, data, store_answer)

    @post(
        "/login", summary="Sign in", status_code=200, public=True, errors=(401,), idempotent=False
    )
    async def login(
        self, services: Services, client: ClientInfo, data: JSONBody[Login]
    ) -> SignedIn | MfaRequired:
        """Returns both tokens or, with MFA, a token for `POST /auth/mfa/verify`. After five wrong
        passwords for one account, each further attempt must wait, longer each time.
        """
        return await sign_in.sign_in(services, data, client)

    @post(
        "/refresh",
        summary="Get a new pair of tokens",
        status_code=200,
        public=True,
        errors=(401,),
        idempotent=False,
    )
    async def refresh(
        self, services: Services, address: Address, data: JSONBody[Refresh]
    ) -> TokenPair:
        """A refresh token works once. Sent again within ten seconds it gives the same pair; later
        the whole session ends.
        """
        return await sign_in.refresh(services, data.refresh_token, address)

    @post("/logout", summary="Sign out", status_code=200, idempotent=False, own=True)
    async def logout(self, tx: Tx, services: Services, principal: Principal) -> Done:
        """Both tokens of this session stop working at once."""
        await sign_in.sign_out(tx, services, principal)
        return Done("Signed out")

    @get("/me", summary="Get my account", own=True)
    async def get_me(self, tx: Tx, principal: Principal) -> UserView:
        return await sign_in.get_me(tx, principal)

    @get("/sessions", summary="List my sessions", own=True)
    async def list_sessions(
        self, tx: Tx, principal: Principal, page_in: Page
    ) -> Paged[SessionView]:
        """Those that are signed in now, the last used first. `is_current` marks the caller's."""
        return await own_sessions.list_page(tx, principal, page_in)

    @delete("/sessions/{session_id:str}", summary="End one of my sessions", own=True)
    async def end_session(
        self, tx: Tx, services: Services, principal: Principal, session_id: Id
    ) -> None:
        """Both of its tokens stop working at once. Ending the current session signs out."""
        await own_sessions.end(tx, services.session_cache, principal, session_id)

    @post(
        "/change-password",
        summary="Change my password",
        status_code=200,
        idempotent=False,
        own=True,
    )
    async def change_password(
        self,
        services: Services,
        principal: Principal,
        address: Address,
        data: JSONBody[ChangePassword],
    ) -> Done:
        """Ends all other sessions."""
        return await password.change_password(services, principal, data, address)

    @post(
        "/forgot-password",
        summary="Ask for a mail to reset a password",
        status_code=200,
        public=True,
        idempotent=False,
    )
    async def forgot_password(self, services: Services, data: JSONBody[ForgotPassword]) -> Done:
        """The answer is the same whether or not an account has this address."""
        return await password.request_reset(services, data.email)

    @post(
        "/reset-password",
        summary="Reset a password",
        status_code=200,
        public=True,
        idempotent=False,
    )
    async def reset_password(
        self, services: Services, address: Address, data: JSONBody[ResetPassword]
    ) -> Done:
        """Takes the token from the mail, once, within an hour. Ends all sessions."""
        return await password.reset_password(services, data, address)

    @post(
        "/verify-email",
        summary="Verify an e-mail address",
        status_code=200,
        public=True,
        idempotent=False,
    )
    async def verify_email(self, tx: Tx, services: Services, data: JSONBody[VerifyEmail]) -> Done:
        """Takes the token from the mail, once, within three days. Sessions of the account have all
        permissions of its role from the next request on.
        """
        return await registration.verify_email(tx, services, data.token)

    @post(
        "/invitations/look-up",
        summary="Look up an invitation",
        status_code=200,
        public=True,
        errors=(404,),
        idempotent=False,
    )
    async def look_up_invitation(self, tx: Tx, data: JSONBody[LookUpInvitation]) -> InvitationLink:
        """Takes the token from the mail, and does not use it."""
        return await mailed_links.look_up_invitation(tx, data.token)

    @post(
        "/links/look-up",
        summary="Look up the link of a mail",
        status_code=200,
        public=True,
        errors=(404,),
        idempotent=False,
    )
    async def look_up_link(self, tx: Tx, data: JSONBody[LookUpLink]) -> MailedLink:
        """Takes the token from a mail to verify an address or to reset a password, and does not use
        it. A link is known for a day after it has expired.
        """
        return await mailed_links.look_up_token(tx, data)

    @post("/verify-email/resend", summary="Mail the verification again", status_code=200, own=True)
    async def resend_verification(self, tx: Tx, services: Services, principal: Principal) -> Done:
        return await registration.resend_verification(tx, services, principal)


class UserController(Controller):
    path = "/users"
    tags = ["Users"]
    opt = {"needs": "admin:users"}

    @get(summary="List users")
    async def list_users(
        self,
        tx: Tx,
        page_in: Page,
        search: Search = None,
        role: Annotated[Role | None, QueryParameter(description="Only this role")] = None,
        status: Annotated[Status | None, QueryParameter(description="Only this status")] = None,
        sort: Sort = None,
    ) -> Users:
        """The newest first by default; `search` looks at e-mail and names."""
        return await users.list_page(tx, page_in, UserFilter(search, role, status), sort)

    @get("/{user_id:str}", summary="Get a user")
    async def get_user(self, tx: Tx, user_id: Id) -> UserView:
        return await users.get(tx, user_id)

    @post("/invite", summary="Invite somebody")
    async def invite_user(
        self, tx: Tx, services: Services, principal: Principal, data: JSONBody[Invite]
    ) -> InvitationView:
        """Mails the token and shows it once. Nobody can invite above their own role."""
        return await invitations.invite(tx, services, principal, data)

    @get("/invitations", summary="List invitations")
    async def list_invitations(
        self, tx: Tx, page_in: Page, sort: Sort = None
    ) -> Paged[InvitationEntry]:
        """The newest first by default; sort by email, expires_at or created_at."""
        return await invitations.list_page(tx, page_in, sort)

    @post(
        "/invitations/{invitation_id:str}/revoke", summary="Revoke an invitation", status_code=200
    )
    async def revoke_invitation(self, tx: Tx, principal: Principal, invitation_id: Id) -> Done:
        await invitations.revoke(tx, principal, invitation_id)
        return Done("The invitation is revoked")

    # For clients of release 0.1.0: a generator cannot tell it from /users/{user_id}/role.
    @delete("/invitations/{invitation_id:str}", status_code=200, include_in_schema=False)
    async def delete_invitation(self, tx: Tx, principal: Principal, invitation_id: Id) -> Done:
        await invitations.revoke(tx, principal, invitation_id)
        return Done("The invitation is revoked")

    @put(
        "/{user_id:str}/role",
        summary="Change a user's role",
        record=Record(
            lock_in_order(users.lock_administration, lock_row("users", id="user_id")), "get_user"
        ),
    )
    async def change_user_role(
        self,
        tx: Tx,
        services: Services,
        principal: Principal,
        user_id: Id,
        data: JSONBody[ChangeRole],
    ) -> RoleChanged:
        """Ends the user's sessions. Neither the old nor the new role may be above the caller's."""
        changed = await users.change_role(tx, services, principal, user_id, data.role)
        message = f"The role is already {data.role}"
        if changed:
            message = f"The role is now {data.role}; the user must sign in again"
        return RoleChanged(user_id, data.role, message)

    @post("/{user_id:str}/deactivate", summary="Deactivate a user", status_code=200)
    async def deactivate_user(
        self, tx: Tx, services: Services, principal: Principal, user_id: Id
    ) -> StatusChanged:
        """Ends all of the user's sessions."""
        await users.deactivate(tx, services, principal, user_id)
        return StatusChanged(user_id, "inactive", "The user can no longer sign in")

    @post("/{user_id:str}/reactivate", summary="Reactivate a user", status_code=200)
    async def reactivate_user(self, tx: Tx, principal: Principal, user_id: Id) -> StatusChanged:
        await users.reactivate(tx, principal, user_id)
        return StatusChanged(user_id, "active", "The user can sign in again")

    @delete("/{user_id:str}", summary="Delete a user", status_code=200)
    async def delete_user(
        self, tx: Tx, services: Services, principal: Principal, user_id: Id
    ) -> Done:
        """Deletes the user with sessions, devices and tokens. Resources that the user created stay
        with the tenant.
        """
        await users.delete(tx, services, principal, user_id)
        return Done("The user is deleted")
