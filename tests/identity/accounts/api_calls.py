"""Requests to the routes of accounts."""

from collections.abc import Awaitable, Callable
from typing import Any

import httpx

from app.kit.ids import new_id
from tests.identity.accounts.values import NEW_PASSWORD
from tests.world import PASSWORD, Client, World

Pair = dict[str, Any]
UserAction = Callable[[Client, str], Awaitable[httpx.Response]]

# Sign-in and tokens


async def log_in(caller: Client, email: str, password: str = PASSWORD) -> httpx.Response:
    return await caller.post("/auth/login", {"email": email, "password": password})


async def get_login_status(caller: Client, email: str, password: str) -> int:
    return (await log_in(caller, email, password)).status_code


async def sign_in_pair(caller: Client, email: str) -> Pair:
    answer = await log_in(caller, email)
    assert answer.status_code == 200, answer.text
    pair: Pair = answer.json()
    return pair


async def sign_in_client(world: World, email: str) -> Client:
    answer = await log_in(world.anonymous(), email)
    return Client(world.app, answer.json()["access_token"], email=email)


async def begin_session(world: World, email: str, password: str = PASSWORD) -> Client:
    """Signs in and uses the access token once, so that Redis caches the session."""
    pair = (await log_in(world.anonymous(), email, password)).json()
    client = Client(world.app, pair["access_token"], refresh_token=pair["refresh_token"])
    assert await get_own_status(client) == 200
    return client


async def refresh_tokens(caller: Client, token: object) -> httpx.Response:
    return await caller.post("/auth/refresh", {"refresh_token": token})


async def refresh_pair(caller: Client, token: str) -> Pair:
    answer = await refresh_tokens(caller, token)
    assert answer.status_code == 200, answer.text
    pair: Pair = answer.json()
    return pair


async def refresh_own_tokens(client: Client) -> int:
    return (await refresh_tokens(client, client.refresh_token)).status_code


async def get_me_status(caller: Client, token: str) -> int:
    answer = await caller.get("/auth/me", headers={"authorization": f"Bearer {token}"})
    return answer.status_code


async def get_own_status(client: Client) -> int:
    return (await client.get("/auth/me")).status_code


# Passwords


async def change_password(
    caller: Client, current: object = PASSWORD, new: object = NEW_PASSWORD, **more: Any
) -> httpx.Response:
    body = {"current_password": current, "new_password": new}
    return await caller.post("/auth/change-password", body, **more)


async def request_reset(caller: Client, email: object) -> httpx.Response:
    return await caller.post("/auth/forgot-password", {"email": email})


async def reset_password(
    caller: Client, token: object, new: object = NEW_PASSWORD
) -> httpx.Response:
    return await caller.post("/auth/reset-password", {"token": token, "new_password": new})


# Registration and invitations


def registration_body(**fields: Any) -> dict[str, Any]:
    return {
        "email": f"{new_id('new')}@example.com",
        "password": PASSWORD,
        "first_name": "Ada",
        "last_name": "Lovelace",
        **fields,
    }


def invited_body(invitation: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """Returns the registration of the invited user."""
    required = {name: invitation[name] for name in ("email", "invitation_token")}
    return registration_body(**{**required, **fields})


async def register(caller: Client, **fields: Any) -> dict[str, Any]:
    answer = await caller.post("/auth/register", registration_body(**fields))
    assert answer.status_code == 201, answer.text
    account: dict[str, Any] = answer.json()
    return account


async def join(caller: Client, email: str, token: str) -> int:
    """Registers with an invitation token; returns the status."""
    body = registration_body(email=email, invitation_token=token)
    return (await caller.post("/auth/register", body)).status_code


def invitation_body(**fields: Any) -> dict[str, Any]:
    return {"email": f"{new_id('mail')}@example.com", "role": "viewer", **fields}


async def invite(
    inviter: Client, role: str = "viewer", headers: dict[str, str] | None = None, **fields: Any
) -> dict[str, Any]:
    body = invitation_body(role=role, **fields)
    answer = await inviter.post("/users/invite", body, headers=headers)
    assert answer.status_code == 201, answer.text
    invitation: dict[str, Any] = answer.json()
    return invitation


# Administration of users


async def change_role(actor: Client, user_id: str, role: object) -> httpx.Response:
    return await actor.put(f"/users/{user_id}/role", {"role": role})


async def demote(actor: Client, user_id: str) -> httpx.Response:
    return await change_role(actor, user_id, "viewer")


async def deactivate(actor: Client, user_id: str) -> httpx.Response:
    return await actor.post(f"/users/{user_id}/deactivate")


async def reactivate(actor: Client, user_id: str) -> httpx.Response:
    return await actor.post(f"/users/{user_id}/reactivate")


async def delete_user(actor: Client, user_id: str) -> httpx.Response:
    return await actor.delete(f"/users/{user_id}")


USER_ACTIONS = [demote, deactivate, reactivate, delete_user]
# These end a user's access and may remove an administrator.
ACCESS_REMOVALS = [demote, deactivate, delete_user]


async def list_users_page(
    caller: Client, headers: dict[str, str] | None = None, **params: Any
) -> Any:
    answer = await caller.get("/users", params=params, headers=headers)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def list_user_ids(
    caller: Client, headers: dict[str, str] | None = None, **params: Any
) -> list[str]:
    return [user["id"] for user in (await list_users_page(caller, headers, **params))["users"]]
