"""Administering users: never above one's own role, never the last administrator."""

import asyncio
import io
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

import httpx
import msgspec
import pyotp
import pytest
from PIL import Image
from sqlalchemy import event

from app import bootstrap
from app.kit import clock
from app.kit.files import FileNotStored
from app.kit.ids import new_id
from app.main import create_app
from app.security.sessions import bump_grants
from app.services import Services
from db.models import RoleGrant, User
from db.session import ALL_TENANTS
from tests.stores import Stores
from tests.world import PASSWORD, Client, World

USER_KEYS = {
    "id",
    "email",
    "first_name",
    "last_name",
    "role",
    "tenant_id",
    "email_verified",
    "mfa_enabled",
    "status",
    "last_login_at",
    "created_at",
    "updated_at",
}
ROLES = ["super_admin", "tenant_admin", "agent_developer", "agent_user", "viewer"]
NO_ADMINS = ["agent_developer", "agent_user", "viewer"]

Act = Callable[[Client, str], Awaitable[httpx.Response]]


async def _demote(actor: Client, user_id: str) -> httpx.Response:
    return await _give(actor, user_id, "viewer")


async def _deactivate(actor: Client, user_id: str) -> httpx.Response:
    return await actor.post(f"/users/{user_id}/deactivate")


async def _reactivate(actor: Client, user_id: str) -> httpx.Response:
    return await actor.post(f"/users/{user_id}/reactivate")


async def _delete(actor: Client, user_id: str) -> httpx.Response:
    return await actor.delete(f"/users/{user_id}")


async def _give(actor: Client, user_id: str, role: object) -> httpx.Response:
    return await actor.put(f"/users/{user_id}/role", {"role": role})


ACTS = [_demote, _deactivate, _reactivate, _delete]
# Those that shut a user out, and may leave one administrator less.
FALLS = [_demote, _deactivate, _delete]


async def _login(caller: Client, email: str) -> httpx.Response:
    return await caller.post("/auth/login", {"email": email, "password": PASSWORD})


async def _refresh(user: Client) -> int:
    answer = await user.post("/auth/refresh", {"refresh_token": user.refresh_token})
    return answer.status_code


async def _status(user: Client) -> int:
    return (await user.get("/auth/me")).status_code


async def _row(services: Services, user_id: str) -> User | None:
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        user: User | None = await (await tx.session()).get(User, user_id)
    return user


async def _standing(services: Services, user: Client) -> tuple[str, str] | None:
    row = await _row(services, user.user_id)
    return (row.role, row.status) if row is not None else None


async def _set(services: Services, user: Client, **values: object) -> None:
    async with services.db.tx(ALL_TENANTS) as tx:
        row = await (await tx.session()).get_one(User, user.user_id)
        for name, value in values.items():
            setattr(row, name, value)


async def _events(services: Services, user: Client, kind: str) -> list[dict[str, Any]]:
    """What the user's tenant is told of them."""
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        rows = await (await tx.raw()).fetch(
            "SELECT data::text FROM event_log "
            "WHERE type = $1 AND tenant_id = $2 AND data ->> 'user_id' = $3 ORDER BY id",
            f"system.user.{kind}",
            user.tenant_id,
            user.user_id,
        )
    return [msgspec.json.decode(row["data"]) for row in rows]


async def _make(services: Services, tenant_id: str, *differences: dict[str, Any]) -> list[str]:
    """Users the short way: all at the very same moment, so that lists have ties."""
    now = clock.now()
    rows = [
        User(
            **{
                "id": new_id("usr"),
                "tenant_id": tenant_id,
                "email": f"{new_id('x')[2:]}@example.com",
                "first_name": "Ada",
                "last_name": "Lovelace",
                "password_hash": "none",
                "role": "viewer",
                "created_at": now,
                **difference,
            }
        )
        for difference in differences
    ]
    async with services.db.tx(ALL_TENANTS) as tx:
        (await tx.session()).add_all(rows)
    return [row.id for row in rows]


async def _page(caller: Client, headers: dict[str, str] | None = None, **params: Any) -> Any:
    answer = await caller.get("/users", params=params, headers=headers)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def _ids(caller: Client, headers: dict[str, str] | None = None, **params: Any) -> list[str]:
    return [user["id"] for user in (await _page(caller, headers, **params))["users"]]


@pytest.fixture
async def colleague(world: World, admin: Client) -> Client:
    """Somebody in the tenant of `admin`."""
    return await world.user("agent_user", admin.tenant_id)


@pytest.fixture
async def stranger(world: World) -> Client:
    """Somebody in a tenant of their own."""
    return await world.user("viewer")


# List


async def test_a_list_is_users_and_the_totals_beside_them(admin: Client) -> None:
    page = await _page(admin)
    assert set(page) == {"users", "total", "page", "per_page"}
    assert (page["total"], page["page"], page["per_page"]) == (1, 1, 20)
    assert [set(user) for user in page["users"]] == [USER_KEYS]


async def test_a_user_in_a_list_is_as_the_user_sees_itself(
    admin: Client, colleague: Client
) -> None:
    listed = {user["id"]: user for user in (await _page(admin))["users"]}
    assert listed[colleague.user_id] == (await colleague.get("/auth/me")).json()


async def test_a_list_tells_no_password_and_no_key_of_a_picture(
    admin: Client, colleague: Client, services: Services
) -> None:
    await _set(
        services, colleague, avatar_key=f"secret-{colleague.user_id}", avatar_type="image/png"
    )
    text = (await admin.get("/users")).text
    assert colleague.user_id in text
    assert [word for word in ("argon2", "password", "secret-", "avatar") if word in text] == []


async def test_a_tenant_admin_sees_its_own_tenant_only(
    admin: Client, colleague: Client, stranger: Client
) -> None:
    assert set(await _ids(admin)) == {admin.user_id, colleague.user_id}


async def test_super_admin_sees_every_tenant(
    super_admin: Client, admin: Client, stranger: Client
) -> None:
    ids = [await _ids(super_admin, search=user.email) for user in (admin, stranger)]
    assert ids == [[admin.user_id], [stranger.user_id]]


async def test_the_header_narrows_super_admins_list(
    super_admin: Client, admin: Client, colleague: Client, stranger: Client
) -> None:
    ids = await _ids(super_admin, {"x-tenant-id": admin.tenant_id})
    assert set(ids) == {admin.user_id, colleague.user_id}


async def test_the_header_narrows_the_total_too(
    super_admin: Client, admin: Client, stranger: Client
) -> None:
    assert (await _page(super_admin, {"x-tenant-id": admin.tenant_id}))["total"] == 1


async def test_the_header_does_not_widen_a_tenant_admins_list(
    admin: Client, stranger: Client
) -> None:
    assert await _ids(admin, {"x-tenant-id": stranger.tenant_id}) == [admin.user_id]


async def test_inactive_users_are_listed(admin: Client, colleague: Client) -> None:
    await _deactivate(admin, colleague.user_id)
    assert colleague.user_id in await _ids(admin)


async def test_the_last_page_holds_the_rest(admin: Client, services: Services) -> None:
    await _make(services, admin.tenant_id, *[{}] * 4)
    page = await _page(admin, page=3, per_page=2)
    assert (len(page["users"]), page["total"], page["page"], page["per_page"]) == (1, 5, 3, 2)


async def test_a_page_past_the_end_is_empty(admin: Client) -> None:
    page = await _page(admin, page=10_000_000)
    assert (page["users"], page["total"]) == ([], 1)


async def test_a_page_holds_a_hundred_at_most(admin: Client, services: Services) -> None:
    await _make(services, admin.tenant_id, *[{}] * 100)
    page = await _page(admin, per_page=100)
    assert (len(page["users"]), page["total"]) == (100, 101)


@pytest.mark.parametrize("name", ["page", "per_page"])
@pytest.mark.parametrize("value", ["0", "-1", "abc", "", "1.5", "99999999999999999999"])
async def test_a_page_out_of_bounds_is_named(admin: Client, name: str, value: str) -> None:
    answer = await admin.get("/users", params={name: value})
    assert answer.status_code == 422
    assert set(answer.json()["error"]["details"]) == {name}


async def test_more_than_a_hundred_on_a_page_is_refused(admin: Client) -> None:
    answer = await admin.get("/users", params={"per_page": 101})
    assert answer.status_code == 422
    assert set(answer.json()["error"]["details"]) == {"per_page"}


async def test_the_newest_come_first(world: World, admin: Client) -> None:
    user_ids = [(await world.user("viewer", admin.tenant_id)).user_id for _ in range(3)]
    assert await _ids(admin) == [*user_ids[::-1], admin.user_id]


SORTED: dict[str, list[Any]] = {
    "email": ["a", "b", "c"],
    "first_name": ["Ada", "Grace", "Hedy"],
    "last_name": ["Hopper", "Lamarr", "Lovelace"],
    "role": ["agent_developer", "agent_user", "viewer"],
    "status": ["active", "inactive"],
    "last_login_at": [clock.now() - timedelta(days=days) for days in (3, 2, 1)],
    "created_at": [clock.now() - timedelta(days=days) for days in (3, 2, 1)],
}


@pytest.mark.parametrize("descending", ["", "-"])
@pytest.mark.parametrize("field", SORTED)
async def test_a_list_is_sorted_as_asked(
    admin: Client, services: Services, field: str, descending: str
) -> None:
    values = SORTED[field]
    if field == "email":
        values = [f"{letter}.{new_id('x')}@example.com" for letter in values]
    mark = new_id("mark")
    searched = {"last_name": mark} if field == "first_name" else {"first_name": mark}
    user_ids = await _make(
        services, admin.tenant_id, *({**searched, field: value} for value in values)
    )
    ids = await _ids(admin, search=mark, sort=descending + field)
    assert ids == (user_ids[::-1] if descending else user_ids)


@pytest.mark.parametrize("sort", ["last_login_at", "-last_login_at"])
async def test_who_never_signed_in_comes_last_either_way(
    admin: Client, services: Services, sort: str
) -> None:
    mark = new_id("mark")
    never, once = await _make(
        services,
        admin.tenant_id,
        {"first_name": mark},
        {"first_name": mark, "last_login_at": clock.now()},
    )
    assert await _ids(admin, search=mark, sort=sort) == [once, never]


@pytest.mark.parametrize(
    "sort",
    [
        "password_hash",
        "id",
        "tenant_id",
        "avatar_key",
        "mfa_enabled",
        "updated_at",
        "-",
        "--email",
        "+email",
        "Email",
        "email,role",
        "email; drop",
    ],
)
async def test_an_unknown_sort_field_is_named(admin: Client, sort: str) -> None:
    answer = await admin.get("/users", params={"sort": sort})
    assert answer.status_code == 422
    assert set(answer.json()["error"]["details"]) == {"sort"}


@pytest.mark.parametrize("sort", ["first_name", "-role", "status", "-last_login_at", "created_at"])
async def test_pages_of_equal_users_neither_repeat_nor_skip(
    admin: Client, services: Services, sort: str
) -> None:
    mark = new_id("mark")
    user_ids = await _make(services, admin.tenant_id, *[{"last_name": mark}] * 7)
    ids = []
    for page in range(1, 5):
        ids += await _ids(admin, search=mark, sort=sort, page=page, per_page=2)
    assert sorted(ids) == sorted(user_ids)


@pytest.mark.parametrize("role", ROLES)
async def test_a_list_can_be_of_one_role(admin: Client, services: Services, role: str) -> None:
    mark = new_id("mark")
    user_ids = await _make(
        services,
        admin.tenant_id,
        *({"last_name": mark, "role": other_role} for other_role in ROLES),
    )
    assert await _ids(admin, search=mark, role=role) == [user_ids[ROLES.index(role)]]


@pytest.mark.parametrize(("status", "place"), [("active", 0), ("inactive", 1)])
async def test_a_list_can_be_of_one_status(
    admin: Client, services: Services, status: str, place: int
) -> None:
    mark = new_id("mark")
    user_ids = await _make(
        services,
        admin.tenant_id,
        {"last_name": mark},
        {"last_name": mark, "status": "inactive"},
    )
    assert await _ids(admin, search=mark, status=status) == [user_ids[place]]


async def test_the_filters_hold_together(admin: Client, services: Services) -> None:
    mark = new_id("mark")
    user_ids = await _make(
        services,
        admin.tenant_id,
        {"last_name": mark, "role": "viewer", "status": "inactive"},
        {"last_name": mark, "role": "viewer"},
        {"last_name": mark, "role": "agent_user", "status": "inactive"},
        {"role": "viewer", "status": "inactive"},
    )
    page = await _page(admin, search=mark, role="viewer", status="inactive")
    assert [user["id"] for user in page["users"]] == [user_ids[0]]
    assert page["total"] == 1


@pytest.mark.parametrize(
    ("name", "value"), [("role", "owner"), ("role", ""), ("status", "deleted"), ("status", "")]
)
async def test_an_unknown_value_of_a_filter_is_named(admin: Client, name: str, value: str) -> None:
    answer = await admin.get("/users", params={name: value})
    assert answer.status_code == 422
    assert set(answer.json()["error"]["details"]) == {name}


@pytest.mark.parametrize("field", ["email", "first_name", "last_name"])
@pytest.mark.parametrize("change", [str.lower, str.upper])
async def test_a_search_finds_part_of_an_email_or_a_name_in_any_case(
    admin: Client, services: Services, field: str, change: Any
) -> None:
    mark = new_id("mark")
    value = f"x.{mark}@example.com" if field == "email" else f"Van {mark} Beek"
    user_ids = await _make(services, admin.tenant_id, {field: value}, {})
    assert await _ids(admin, search=change(mark)) == user_ids[:1]


@pytest.mark.parametrize("text", ["%", "_", "\\", "a%c", "A_a", ".*", "' OR ''='"])
async def test_a_search_is_no_pattern(admin: Client, services: Services, text: str) -> None:
    user_ids = await _make(
        services, admin.tenant_id, {"first_name": f"x{text}y"}, {"first_name": "Ada"}
    )
    assert await _ids(admin, search=text) == user_ids[:1]


async def test_an_empty_search_finds_everybody(admin: Client, colleague: Client) -> None:
    assert len(await _ids(admin, search="")) == 2


async def test_a_search_that_finds_nobody_is_an_empty_list(admin: Client) -> None:
    page = await _page(admin, search=new_id("nobody"))
    assert page == {"users": [], "total": 0, "page": 1, "per_page": 20}


async def test_a_search_that_is_too_long_is_named(admin: Client) -> None:
    answer = await admin.get("/users", params={"search": "x" * 201})
    assert answer.status_code == 422
    assert set(answer.json()["error"]["details"]) == {"search"}


@contextmanager
def _statements(services: Services) -> Iterator[list[str]]:
    """What SQLAlchemy sends while this is open."""
    sent: list[str] = []
    engine = services.db.engine.sync_engine

    def note(_connection: Any, _cursor: Any, statement: str, *_more: Any) -> None:
        sent.append(statement)

    event.listen(engine, "before_cursor_execute", note)
    try:
        yield sent
    finally:
        event.remove(engine, "before_cursor_execute", note)


async def test_fifty_on_a_page_take_as_many_statements_as_five(
    admin: Client, services: Services
) -> None:
    await _make(services, admin.tenant_id, *[{}] * 50)
    counts = []
    for per_page in (5, 50):
        with _statements(services) as sent:
            assert len(await _ids(admin, per_page=per_page)) == per_page
        counts.append(len(sent))
    assert counts == [2, 2]


# Get one


async def test_a_user_is_shown_whole(admin: Client, colleague: Client) -> None:
    answer = await admin.get(f"/users/{colleague.user_id}")
    assert answer.status_code == 200
    assert set(answer.json()) == USER_KEYS
    assert answer.json() == (await colleague.get("/auth/me")).json()


async def test_super_admin_sees_a_user_of_any_tenant(super_admin: Client, stranger: Client) -> None:
    answer = await super_admin.get(f"/users/{stranger.user_id}")
    assert answer.json()["id"] == stranger.user_id


async def test_a_user_of_another_tenant_is_not_there(admin: Client, stranger: Client) -> None:
    answer = await admin.get(f"/users/{stranger.user_id}")
    assert answer.status_code == 404
    assert answer.json()["error"]["code"] == "user_not_found"


async def test_the_header_hides_a_user_of_another_tenant(
    super_admin: Client, admin: Client, stranger: Client
) -> None:
    headers = {"x-tenant-id": admin.tenant_id}
    answer = await super_admin.get(f"/users/{stranger.user_id}", headers=headers)
    assert answer.status_code == 404


@pytest.mark.parametrize("user_id", ["usr_nothing", "me", "%", "x" * 500])
async def test_a_user_that_does_not_exist_is_404(super_admin: Client, user_id: str) -> None:
    answer = await super_admin.get(f"/users/{user_id}")
    assert answer.status_code == 404
    assert answer.json()["error"]["code"] == "user_not_found"


# Who may


@pytest.mark.parametrize("path", ["/users", "/users/usr_x"])
@pytest.mark.parametrize("role", NO_ADMINS)
async def test_who_is_no_admin_sees_nobody(world: World, role: str, path: str) -> None:
    answer = await (await world.user(role)).get(path)
    assert answer.status_code == 403
    assert answer.json()["error"]["details"] == {"required": "admin:users", "your_role": role}


@pytest.mark.parametrize("path", ["/users", "/users/usr_x"])
async def test_nobody_is_seen_without_a_login(anonymous: Client, path: str) -> None:
    assert (await anonymous.get(path)).status_code == 401


@pytest.mark.parametrize("act", ACTS)
async def test_nobody_is_touched_without_a_login(
    anonymous: Client, stranger: Client, act: Act
) -> None:
    assert (await act(anonymous, stranger.user_id)).status_code == 401


def _required(actor: str, target: str) -> str | None:
    """What an actor lacks to touch somebody of a role; None where nothing is lacking."""
    if actor in NO_ADMINS:
        return "admin:users"
    return f"role:{target}" if ROLES.index(target) < ROLES.index(actor) else None


@pytest.mark.parametrize("act", ACTS)
@pytest.mark.parametrize("target", ROLES)
@pytest.mark.parametrize("actor", ROLES)
async def test_nobody_touches_a_role_above_their_own(
    world: World, actor: str, target: str, act: Act
) -> None:
    caller = await world.user(actor)
    user = await world.user(target, caller.tenant_id)
    answer = await act(caller, user.user_id)
    required = _required(actor, target)
    assert answer.status_code == (403 if required else 200)
    if required:
        assert answer.json()["error"]["details"] == {"required": required, "your_role": actor}


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("actor", ROLES)
async def test_nobody_gives_a_role_above_their_own(world: World, actor: str, role: str) -> None:
    caller = await world.user(actor)
    user = await world.user("viewer", caller.tenant_id)
    answer = await _give(caller, user.user_id, role)
    required = _required(actor, role)
    assert answer.status_code == (403 if required else 200)
    if required:
        assert answer.json()["error"]["details"] == {"required": required, "your_role": actor}


@pytest.mark.parametrize("role", ROLES)
async def test_nobody_raises_themselves(world: World, services: Services, role: str) -> None:
    caller = await world.user(role)
    for higher in ROLES[: ROLES.index(role)]:
        assert (await _give(caller, caller.user_id, higher)).status_code == 403
    assert await _standing(services, caller) == (role, "active")


@pytest.mark.parametrize("act", ACTS)
async def test_a_refusal_changes_nothing(
    world: World, admin: Client, services: Services, act: Act
) -> None:
    above = await world.user("super_admin", admin.tenant_id)
    await act(admin, above.user_id)
    assert await _standing(services, above) == ("super_admin", "active")
    assert await _status(above) == 200


@pytest.mark.parametrize("act", ACTS)
async def test_somebody_of_another_tenant_is_not_there_to_be_touched(
    admin: Client, stranger: Client, services: Services, act: Act
) -> None:
    answer = await act(admin, stranger.user_id)
    assert answer.status_code == 404
    assert answer.json()["error"]["code"] == "user_not_found"
    assert await _standing(services, stranger) == ("viewer", "active")


@pytest.mark.parametrize("act", ACTS)
async def test_the_header_does_not_bring_another_tenants_user_within_reach(
    world: World, admin: Client, stranger: Client, act: Act
) -> None:
    reaching = Client(world.app, admin.token)
    reaching.http.headers["x-tenant-id"] = stranger.tenant_id
    assert (await act(reaching, stranger.user_id)).status_code == 404


@pytest.mark.parametrize("act", ACTS)
async def test_super_admin_touches_users_of_every_tenant(
    super_admin: Client, stranger: Client, act: Act
) -> None:
    assert (await act(super_admin, stranger.user_id)).status_code == 200


@pytest.mark.parametrize("act", ACTS)
async def test_super_admin_in_one_tenant_touches_nobody_of_another(
    world: World, super_admin: Client, admin: Client, stranger: Client, act: Act
) -> None:
    narrowed = Client(world.app, super_admin.token)
    narrowed.http.headers["x-tenant-id"] = admin.tenant_id
    assert (await act(narrowed, stranger.user_id)).status_code == 404


@pytest.mark.parametrize("act", ACTS)
async def test_somebody_who_does_not_exist_cannot_be_touched(super_admin: Client, act: Act) -> None:
    answer = await act(super_admin, "usr_nothing")
    assert answer.status_code == 404
    assert answer.json()["error"]["code"] == "user_not_found"


@pytest.fixture
async def developers_administer(services: Services) -> AsyncIterator[None]:
    """Meanwhile agent_developer has the permission to manage users."""

    async def grant(*, is_granted: bool) -> None:
        async with services.db.tx(ALL_TENANTS) as tx:
            session = await tx.session()
            row = await session.get(RoleGrant, ("agent_developer", "admin:users"))
            if is_granted and row is None:
                session.add(RoleGrant(role="agent_developer", permission="admin:users"))
            if not is_granted and row is not None:
                await session.delete(row)
            version = await bump_grants(tx)
        await services.session_cache.change_grants(version)

    await grant(is_granted=True)
    try:
        yield
    finally:
        await grant(is_granted=False)


@pytest.mark.parametrize("act", ACTS)
@pytest.mark.parametrize(
    ("target", "status"),
    [
        ("super_admin", 403),
        ("tenant_admin", 403),
        ("agent_developer", 200),
        ("agent_user", 200),
        ("viewer", 200),
    ],
)
async def test_the_permission_alone_reaches_no_role_above(
    world: World, developers_administer: None, target: str, status: int, act: Act
) -> None:
    caller = await world.user("agent_developer")
    user = await world.user(target, caller.tenant_id)
    assert (await act(caller, user.user_id)).status_code == status


@pytest.mark.parametrize("role", ["super_admin", "tenant_admin"])
async def test_the_permission_alone_gives_no_role_above(
    world: World, developers_administer: None, role: str
) -> None:
    caller = await world.user("agent_developer")
    user = await world.user("viewer", caller.tenant_id)
    answer = await _give(caller, user.user_id, role)
    assert answer.status_code == 403
    assert answer.json()["error"]["details"] == {
        "required": f"role:{role}",
        "your_role": "agent_developer",
    }


# Role


async def test_a_changed_role_is_answered(admin: Client, colleague: Client) -> None:
    answer = await _give(admin, colleague.user_id, "agent_developer")
    body = answer.json()
    assert answer.status_code == 200
    assert set(body) == {"id", "role", "message"}
    assert (body["id"], body["role"]) == (colleague.user_id, "agent_developer")


async def test_a_changed_role_is_there_when_it_is_read_again(
    admin: Client, colleague: Client
) -> None:
    await _give(admin, colleague.user_id, "agent_developer")
    answer = await admin.get(f"/users/{colleague.user_id}")
    assert answer.json()["role"] == "agent_developer"


@pytest.mark.parametrize("role", ["tenant_admin", "viewer"])
async def test_a_changed_role_holds_after_the_next_sign_in(
    admin: Client, colleague: Client, anonymous: Client, role: str
) -> None:
    await _give(admin, colleague.user_id, role)
    token = (await _login(anonymous, colleague.email)).json()["access_token"]
    answer = await anonymous.get("/me/permissions", headers={"authorization": f"Bearer {token}"})
    assert answer.json()["role"] == role


async def test_the_same_role_again_is_answered_alike(admin: Client, colleague: Client) -> None:
    answer = await _give(admin, colleague.user_id, "agent_user")
    assert answer.status_code == 200
    assert (answer.json()["id"], answer.json()["role"]) == (colleague.user_id, "agent_user")


async def test_the_same_role_again_ends_no_session(admin: Client, colleague: Client) -> None:
    await _give(admin, colleague.user_id, "agent_user")
    assert (await _status(colleague), await _refresh(colleague)) == (200, 200)


async def test_the_same_role_again_is_no_event(
    admin: Client, colleague: Client, services: Services
) -> None:
    await _give(admin, colleague.user_id, "agent_user")
    assert await _events(services, colleague, "role_changed") == []


async def test_a_changed_role_is_told_in_the_log(
    admin: Client, colleague: Client, services: Services
) -> None:
    await _give(admin, colleague.user_id, "viewer")
    assert await _events(services, colleague, "role_changed") == [
        {"user_id": colleague.user_id, "before": "agent_user", "after": "viewer"}
    ]


async def test_what_super_admin_does_is_told_in_the_users_tenant(
    super_admin: Client, stranger: Client, services: Services
) -> None:
    await _give(super_admin, stranger.user_id, "agent_user")
    assert len(await _events(services, stranger, "role_changed")) == 1


async def test_a_refused_change_of_role_is_no_event(
    admin: Client, colleague: Client, services: Services
) -> None:
    await _give(admin, colleague.user_id, "super_admin")
    assert await _events(services, colleague, "role_changed") == []


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"role": None},
        {"role": ""},
        {"role": "owner"},
        {"role": "VIEWER"},
        {"role": " viewer"},
        {"role": 5},
        {"role": ["viewer"]},
    ],
)
async def test_what_is_no_role_is_named(
    admin: Client, colleague: Client, body: dict[str, Any]
) -> None:
    answer = await admin.put(f"/users/{colleague.user_id}/role", body)
    assert answer.status_code == 422
    assert answer.json()["error"]["code"] == "validation_error"
    assert set(answer.json()["error"]["details"]) == {"role"}


@pytest.mark.parametrize(
    ("field", "value"),
    [("tenant_id", "ten_other"), ("status", "inactive"), ("email", "x@y.example"), ("id", "x")],
)
async def test_no_other_field_changes_with_a_role(
    admin: Client, colleague: Client, field: str, value: str
) -> None:
    body = {"role": "viewer", field: value}
    await admin.put(f"/users/{colleague.user_id}/role", body)
    user = (await admin.get(f"/users/{colleague.user_id}")).json()
    assert user[field] != value


# What shuts a user out


@pytest.mark.parametrize("act", FALLS)
async def test_the_users_sessions_are_dead_at_once(
    admin: Client, colleague: Client, act: Act
) -> None:
    before = await _status(colleague)
    await act(admin, colleague.user_id)
    assert (before, await _status(colleague)) == (200, 401)


@pytest.mark.parametrize("act", FALLS)
async def test_the_users_sessions_are_dead_when_redis_has_forgotten_them(
    admin: Client, colleague: Client, services: Services, act: Act
) -> None:
    await _status(colleague)
    await act(admin, colleague.user_id)
    await services.redis.flushall()
    assert await _status(colleague) == 401


@pytest.mark.parametrize("act", FALLS)
async def test_the_users_sessions_cannot_be_carried_on(
    admin: Client, colleague: Client, act: Act
) -> None:
    await act(admin, colleague.user_id)
    assert await _refresh(colleague) == 401


@pytest.mark.parametrize("act", FALLS)
async def test_all_sessions_of_the_user_are_dead(
    world: World, admin: Client, colleague: Client, anonymous: Client, act: Act
) -> None:
    pair = (await _login(anonymous, colleague.email)).json()
    second = Client(world.app, pair["access_token"], refresh_token=pair["refresh_token"])
    before = await _status(second)
    await act(admin, colleague.user_id)
    assert (before, await _status(second), await _refresh(second)) == (200, 401, 401)


@pytest.mark.parametrize("act", FALLS)
async def test_the_sessions_of_others_live_on(
    world: World, admin: Client, colleague: Client, act: Act
) -> None:
    other = await world.user("agent_user", admin.tenant_id)
    await act(admin, colleague.user_id)
    assert [await _status(user) for user in (admin, other)] == [200, 200]


async def _mfa(user: Client) -> list[str]:
    """Turns MFA on for this user; the recovery codes."""
    setup = (await user.post("/api/v1/mfa/setup")).json()
    code = pyotp.TOTP(setup["secret"]).at(clock.now())
    answer = await user.post("/api/v1/mfa/enable", {"code": code})
    assert answer.status_code == 200, answer.text
    codes: list[str] = setup["recovery_codes"]
    return codes


@pytest.mark.parametrize("act", FALLS)
async def test_a_sign_in_that_waits_for_its_code_is_void(
    admin: Client, colleague: Client, anonymous: Client, act: Act
) -> None:
    codes = await _mfa(colleague)
    token = (await _login(anonymous, colleague.email)).json()["mfa_token"]
    await act(admin, colleague.user_id)
    await _reactivate(admin, colleague.user_id)
    body = {"mfa_token": token, "code": codes[0]}
    assert (await anonymous.post("/auth/mfa/verify", body)).status_code == 401


# Deactivate and reactivate


async def test_a_deactivation_is_answered(admin: Client, colleague: Client) -> None:
    answer = await _deactivate(admin, colleague.user_id)
    body = answer.json()
    assert answer.status_code == 200
    assert set(body) == {"id", "status", "message"}
    assert (body["id"], body["status"]) == (colleague.user_id, "inactive")


async def test_a_deactivated_user_is_shown_as_inactive(admin: Client, colleague: Client) -> None:
    await _deactivate(admin, colleague.user_id)
    user = (await admin.get(f"/users/{colleague.user_id}")).json()
    assert (user["status"], user["role"]) == ("inactive", "agent_user")


async def test_a_deactivated_user_cannot_sign_in(
    admin: Client, colleague: Client, anonymous: Client
) -> None:
    await _deactivate(admin, colleague.user_id)
    answer = await _login(anonymous, colleague.email)
    assert answer.status_code == 401
    assert answer.json()["error"]["code"] == "unauthorized"


async def test_a_second_deactivation_is_answered_alike(admin: Client, colleague: Client) -> None:
    answers = [await _deactivate(admin, colleague.user_id) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [200, 200]
    assert answers[0].content == answers[1].content


async def test_a_deactivation_is_told_once(
    admin: Client, colleague: Client, services: Services
) -> None:
    for _ in range(2):
        await _deactivate(admin, colleague.user_id)
    assert await _events(services, colleague, "deactivated") == [{"user_id": colleague.user_id}]


async def test_a_reactivation_is_answered(admin: Client, colleague: Client) -> None:
    await _deactivate(admin, colleague.user_id)
    answer = await _reactivate(admin, colleague.user_id)
    body = answer.json()
    assert answer.status_code == 200
    assert set(body) == {"id", "status", "message"}
    assert (body["id"], body["status"]) == (colleague.user_id, "active")


async def test_a_reactivated_user_can_sign_in(
    admin: Client, colleague: Client, anonymous: Client
) -> None:
    await _deactivate(admin, colleague.user_id)
    await _reactivate(admin, colleague.user_id)
    answer = await _login(anonymous, colleague.email)
    assert answer.status_code == 200
    assert answer.json()["user"]["role"] == "agent_user"


async def test_a_reactivated_users_old_sessions_stay_dead(admin: Client, colleague: Client) -> None:
    await _deactivate(admin, colleague.user_id)
    await _reactivate(admin, colleague.user_id)
    assert (await _status(colleague), await _refresh(colleague)) == (401, 401)


async def test_a_reactivated_users_old_sessions_stay_dead_when_redis_has_forgotten_them(
    admin: Client, colleague: Client, services: Services
) -> None:
    await _deactivate(admin, colleague.user_id)
    await _reactivate(admin, colleague.user_id)
    await services.redis.flushall()
    assert await _status(colleague) == 401


async def test_a_reactivated_user_still_needs_a_code(
    admin: Client, colleague: Client, anonymous: Client
) -> None:
    await _mfa(colleague)
    await _deactivate(admin, colleague.user_id)
    await _reactivate(admin, colleague.user_id)
    assert (await _login(anonymous, colleague.email)).json()["mfa_required"] is True


async def test_reactivating_who_is_active_ends_no_session(admin: Client, colleague: Client) -> None:
    answer = await _reactivate(admin, colleague.user_id)
    assert (answer.status_code, answer.json()["status"]) == (200, "active")
    assert await _status(colleague) == 200


async def test_a_reactivation_is_told_once(
    admin: Client, colleague: Client, services: Services
) -> None:
    await _deactivate(admin, colleague.user_id)
    for _ in range(2):
        await _reactivate(admin, colleague.user_id)
    assert await _events(services, colleague, "reactivated") == [{"user_id": colleague.user_id}]


async def test_the_log_names_who_did_it(
    admin: Client, colleague: Client, services: Services
) -> None:
    await _deactivate(admin, colleague.user_id)
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        actor = await (await tx.raw()).fetchval(
            "SELECT actor_id FROM event_log "
            "WHERE type = 'system.user.deactivated' AND data ->> 'user_id' = $1",
            colleague.user_id,
        )
    assert actor == admin.user_id


# Delete


async def test_a_deletion_answers_with_a_message(admin: Client, colleague: Client) -> None:
    answer = await _delete(admin, colleague.user_id)
    assert (answer.status_code, set(answer.json())) == (200, {"message"})


async def test_a_deleted_user_is_gone(admin: Client, colleague: Client) -> None:
    await _delete(admin, colleague.user_id)
    answer = await admin.get(f"/users/{colleague.user_id}")
    assert answer.status_code == 404
    assert await _ids(admin) == [admin.user_id]


async def test_a_deleted_user_cannot_sign_in(
    admin: Client, colleague: Client, anonymous: Client
) -> None:
    await _delete(admin, colleague.user_id)
    assert (await _login(anonymous, colleague.email)).status_code == 401


@pytest.mark.parametrize("act", ACTS)
async def test_nothing_can_be_done_to_a_deleted_user(
    admin: Client, colleague: Client, act: Act
) -> None:
    await _delete(admin, colleague.user_id)
    answer = await act(admin, colleague.user_id)
    assert answer.status_code == 404
    assert answer.json()["error"]["code"] == "user_not_found"


async def test_an_inactive_user_can_be_deleted(admin: Client, colleague: Client) -> None:
    await _deactivate(admin, colleague.user_id)
    assert (await _delete(admin, colleague.user_id)).status_code == 200


@pytest.mark.parametrize("table", ["sessions", "one_time_tokens", "mfa_devices", "recovery_codes"])
async def test_what_is_about_the_person_goes_with_them(
    admin: Client, colleague: Client, anonymous: Client, services: Services, table: str
) -> None:
    await _mfa(colleague)
    await anonymous.post("/auth/forgot-password", {"email": colleague.email})
    counts = [await _count(services, table, colleague.user_id)]
    await _delete(admin, colleague.user_id)
    counts.append(await _count(services, table, colleague.user_id))
    assert counts[0] > 0
    assert counts[1] == 0


async def _count(services: Services, table: str, user_id: str) -> int:
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        raw = await tx.raw()
        count: int = await raw.fetchval(f"SELECT count(*) FROM {table} WHERE user_id = $1", user_id)
    return count


async def _picture(user: Client) -> str:
    """Gives the user a picture; its key."""
    out = io.BytesIO()
    Image.new("RGB", (8, 8), "red").save(out, "PNG")
    files = {"avatar": ("me.png", out.getvalue(), "image/png")}
    answer = await user("POST", "/api/v1/profile/avatar", files=files)
    url: str = answer.json()["avatar_url"]
    return urlsplit(url).path.rpartition("/")[2]


async def test_the_picture_of_a_deleted_user_is_gone(
    admin: Client, colleague: Client, anonymous: Client, services: Services
) -> None:
    key = await _picture(colleague)
    before = (await anonymous.get(f"/api/v1/avatars/{key}")).status_code
    await _delete(admin, colleague.user_id)
    assert (before, (await anonymous.get(f"/api/v1/avatars/{key}")).status_code) == (200, 404)
    with pytest.raises(FileNotStored):
        await services.files.read(f"avatars/{key}")


async def test_a_refused_deletion_leaves_the_picture(admin: Client, anonymous: Client) -> None:
    key = await _picture(admin)
    await _delete(admin, admin.user_id)
    assert (await anonymous.get(f"/api/v1/avatars/{key}")).status_code == 200


async def test_the_invitations_of_a_deleted_user_stay_but_are_void(
    world: World, admin: Client, services: Services
) -> None:
    inviter = await world.user("tenant_admin", admin.tenant_id)
    body = {"email": f"{new_id('guest')}@example.com", "role": "viewer"}
    invitation = (await inviter.post("/users/invite", body)).json()
    await _delete(admin, inviter.user_id)
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        row = await (await tx.raw()).fetchrow(
            "SELECT invited_by, used_at, expires_at <= now() AS void FROM invitations "
            "WHERE id = $1",
            invitation["id"],
        )
    assert tuple(row) == (None, None, True)


async def test_who_is_promoted_keeps_the_invitations_that_they_gave(
    world: World, super_admin: Client, services: Services
) -> None:
    inviter = await world.user("tenant_admin")
    body = {"email": f"{new_id('x')}@example.com", "role": "viewer"}
    invitation = (await inviter.post("/users/invite", body)).json()
    await _give(super_admin, inviter.user_id, "super_admin")
    async with services.db.tx(ALL_TENANTS) as tx:
        holds = await (await tx.raw()).fetchval(
            "SELECT expires_at > now() FROM invitations WHERE id = $1", invitation["id"]
        )
    assert holds


async def test_whom_a_deleted_user_invited_stays(
    world: World, admin: Client, anonymous: Client
) -> None:
    inviter = await world.user("tenant_admin", admin.tenant_id)
    email = f"{new_id('guest')}@example.com"
    invitation = (await inviter.post("/users/invite", {"email": email, "role": "viewer"})).json()
    await anonymous.post(
        "/auth/register",
        {
            "email": email,
            "password": PASSWORD,
            "first_name": "Ada",
            "last_name": "Lovelace",
            "invitation_token": invitation["invitation_token"],
        },
    )
    await _delete(admin, inviter.user_id)
    assert (await _login(anonymous, email)).status_code == 200


async def test_the_log_of_what_a_deleted_user_did_stays(
    admin: Client, colleague: Client, anonymous: Client, services: Services
) -> None:
    await _login(anonymous, colleague.email)
    await _delete(admin, colleague.user_id)
    assert len(await _events(services, colleague, "signed_in")) == 1


async def test_a_mail_on_its_way_to_a_deleted_user_stays(
    admin: Client, colleague: Client, anonymous: Client, services: Services
) -> None:
    await anonymous.post("/auth/forgot-password", {"email": colleague.email})
    await _delete(admin, colleague.user_id)
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        count = await (await tx.raw()).fetchval(
            "SELECT count(*) FROM mail_messages WHERE recipient = $1", colleague.email
        )
    assert count == 1


async def test_a_deletion_is_told_in_the_log(
    admin: Client, colleague: Client, services: Services
) -> None:
    await _delete(admin, colleague.user_id)
    assert await _events(services, colleague, "deleted") == [
        {"user_id": colleague.user_id, "email": colleague.email, "role": "agent_user"}
    ]


async def test_of_deletions_at_once_one_succeeds(admin: Client, colleague: Client) -> None:
    answers = await asyncio.gather(*(_delete(admin, colleague.user_id) for _ in range(5)))
    assert sorted(answer.status_code for answer in answers) == [200, 404, 404, 404, 404]


async def test_the_address_of_a_deleted_user_is_free_again(
    admin: Client, colleague: Client
) -> None:
    await _delete(admin, colleague.user_id)
    body = {"email": colleague.email, "role": "viewer"}
    assert (await admin.post("/users/invite", body)).status_code == 201


# A tenant's last administrator


@pytest.mark.parametrize("fall", FALLS)
async def test_a_tenants_last_admin_cannot_leave_it_without_one(
    admin: Client, colleague: Client, services: Services, fall: Act
) -> None:
    answer = await fall(admin, admin.user_id)
    assert answer.status_code == 409
    assert answer.json()["error"]["code"] == "last_admin"
    assert await _standing(services, admin) == ("tenant_admin", "active")


@pytest.mark.parametrize("fall", FALLS)
async def test_a_refused_fall_ends_no_session(admin: Client, fall: Act) -> None:
    await fall(admin, admin.user_id)
    assert (await _status(admin), await _refresh(admin)) == (200, 200)


@pytest.mark.parametrize("fall", FALLS)
async def test_an_inactive_admin_does_not_count(
    world: World, admin: Client, services: Services, fall: Act
) -> None:
    other = await world.user("tenant_admin", admin.tenant_id)
    await _set(services, other, status="inactive")
    assert (await fall(admin, admin.user_id)).status_code == 409


@pytest.mark.parametrize("fall", FALLS)
async def test_an_admin_of_another_tenant_does_not_count(
    world: World, admin: Client, fall: Act
) -> None:
    await world.user("tenant_admin")
    assert (await fall(admin, admin.user_id)).status_code == 409


@pytest.mark.parametrize("role", ["tenant_admin", "super_admin"])
@pytest.mark.parametrize("fall", FALLS)
async def test_an_admin_can_go_where_another_stays(
    world: World, admin: Client, role: str, fall: Act
) -> None:
    await world.user(role, admin.tenant_id)
    assert (await fall(admin, admin.user_id)).status_code == 200
    assert await _status(admin) == 401


@pytest.mark.parametrize("fall", FALLS)
async def test_super_admin_takes_even_a_tenants_last_admin_away(
    super_admin: Client, admin: Client, fall: Act
) -> None:
    assert (await fall(super_admin, admin.user_id)).status_code == 200


@pytest.mark.parametrize("fall", FALLS)
async def test_two_admins_who_take_each_other_away_leave_one(
    world: World, services: Services, fall: Act
) -> None:
    for _ in range(3):
        first = await world.user("tenant_admin")
        second = await world.user("tenant_admin", first.tenant_id)
        answers = await asyncio.gather(fall(first, second.user_id), fall(second, first.user_id))
        assert [answer.status_code for answer in answers].count(200) == 1
        standing = [await _standing(services, user) for user in (first, second)]
        assert standing.count(("tenant_admin", "active")) == 1


@pytest.mark.parametrize("fall", FALLS)
async def test_two_admins_who_go_at_once_leave_one(
    world: World, services: Services, fall: Act
) -> None:
    for _ in range(3):
        first = await world.user("tenant_admin")
        second = await world.user("tenant_admin", first.tenant_id)
        answers = await asyncio.gather(fall(first, first.user_id), fall(second, second.user_id))
        assert sorted(answer.status_code for answer in answers) == [200, 409]


# The instance's last super_admin


@pytest.fixture(scope="module")
async def elsewhere() -> AsyncIterator[World]:
    """An instance of its own, where no other test makes super_admins."""
    stores = Stores()
    try:
        await stores.start()
        app = create_app(stores.settings)
        services: Services = app.state.services
        await bootstrap.prepare(services.db, services.keyring, "enterprise")
        yield World(app)
        await services.close()
    finally:
        stores.close()


@pytest.fixture
async def last(elsewhere: World) -> Client:
    """The only active super_admin of its instance; an inactive one stands beside."""
    beside = await elsewhere.user("super_admin")
    async with elsewhere.services.db.tx(ALL_TENANTS) as tx:
        await (await tx.raw()).execute(
            "UPDATE users SET status = 'inactive' WHERE role = 'super_admin'"
        )
    return await elsewhere.user("super_admin", beside.tenant_id)


@pytest.mark.parametrize("fall", FALLS)
async def test_the_last_super_admin_cannot_go(elsewhere: World, last: Client, fall: Act) -> None:
    answer = await fall(last, last.user_id)
    assert answer.status_code == 409
    assert answer.json()["error"]["code"] == "last_admin"
    assert await _standing(elsewhere.services, last) == ("super_admin", "active")


async def test_the_last_super_admin_does_not_even_become_a_tenant_admin(last: Client) -> None:
    answer = await _give(last, last.user_id, "tenant_admin")
    assert answer.status_code == 409
    assert answer.json()["error"]["code"] == "last_admin"


@pytest.mark.parametrize("fall", FALLS)
async def test_a_tenant_admin_does_not_stand_in_for_the_last_super_admin(
    elsewhere: World, last: Client, fall: Act
) -> None:
    await elsewhere.user("tenant_admin", last.tenant_id)
    assert (await fall(last, last.user_id)).status_code == 409


@pytest.mark.parametrize("fall", FALLS)
async def test_the_last_super_admin_stays_signed_in(last: Client, fall: Act) -> None:
    await fall(last, last.user_id)
    assert await _status(last) == 200


@pytest.mark.parametrize("fall", FALLS)
async def test_a_super_admin_can_go_where_another_stays(
    elsewhere: World, last: Client, fall: Act
) -> None:
    await elsewhere.user("super_admin")
    assert (await fall(last, last.user_id)).status_code == 200


async def test_the_last_super_admin_keeps_its_role_when_it_is_given_again(last: Client) -> None:
    assert (await _give(last, last.user_id, "super_admin")).status_code == 200
    assert await _status(last) == 200


@pytest.mark.parametrize("fall", FALLS)
async def test_an_inactive_super_admin_can_be_taken_away(
    elsewhere: World, last: Client, fall: Act
) -> None:
    beside = await elsewhere.user("super_admin")
    await _deactivate(last, beside.user_id)
    assert (await fall(last, beside.user_id)).status_code == 200


@pytest.mark.parametrize("fall", FALLS)
async def test_two_super_admins_who_take_each_other_away_leave_one(
    elsewhere: World, last: Client, fall: Act
) -> None:
    other = await elsewhere.user("super_admin")
    answers = await asyncio.gather(fall(last, other.user_id), fall(other, last.user_id))
    assert [answer.status_code for answer in answers].count(200) == 1
    standing = [await _standing(elsewhere.services, user) for user in (last, other)]
    assert standing.count(("super_admin", "active")) == 1
