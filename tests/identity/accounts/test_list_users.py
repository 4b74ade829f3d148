"""Listing and reading users."""

import itertools
from datetime import timedelta
from typing import Any

import pytest

from app.kit import clock
from app.kit.ids import new_id
from app.services import Services
from db.models import User
from db.session import ALL_TENANTS
from tests.identity.accounts.api_calls import deactivate, list_user_ids, list_users_page
from tests.identity.accounts.records import set_user
from tests.identity.accounts.values import ROLES, USER_KEYS
from tests.world import Client, World


async def _create_users(
    services: Services, tenant_id: str, *differences: dict[str, Any]
) -> list[str]:
    """Creates users with the same creation time, so that lists have ties."""
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


# List


async def test_a_list_has_users_and_totals(admin: Client) -> None:
    page = await list_users_page(admin)
    assert set(page) == {"users", "total", "page", "per_page"}
    assert (page["total"], page["page"], page["per_page"]) == (1, 1, 20)
    assert [set(user) for user in page["users"]] == [USER_KEYS]


async def test_a_listed_user_has_the_same_fields_as_their_own_account(
    admin: Client, colleague: Client
) -> None:
    listed = {user["id"]: user for user in (await list_users_page(admin))["users"]}
    assert listed[colleague.user_id] == (await colleague.get("/auth/me")).json()


async def test_a_list_contains_neither_passwords_nor_keys_of_pictures(
    admin: Client, colleague: Client, services: Services
) -> None:
    await set_user(
        services, colleague, avatar_key=f"secret-{colleague.user_id}", avatar_type="image/png"
    )
    text = (await admin.get("/users")).text
    assert colleague.user_id in text
    assert [word for word in ("argon2", "password", "secret-", "avatar") if word in text] == []


async def test_a_tenant_admin_sees_its_own_tenant_only(
    admin: Client, colleague: Client, stranger: Client
) -> None:
    assert set(await list_user_ids(admin)) == {admin.user_id, colleague.user_id}


async def test_super_admin_sees_every_tenant(
    super_admin: Client, admin: Client, stranger: Client
) -> None:
    ids = [await list_user_ids(super_admin, search=user.email) for user in (admin, stranger)]
    assert ids == [[admin.user_id], [stranger.user_id]]


async def test_the_tenant_header_narrows_super_admins_list(
    super_admin: Client, admin: Client, colleague: Client, stranger: Client
) -> None:
    ids = await list_user_ids(super_admin, {"x-tenant-id": admin.tenant_id})
    assert set(ids) == {admin.user_id, colleague.user_id}


async def test_the_tenant_header_narrows_the_total(
    super_admin: Client, admin: Client, stranger: Client
) -> None:
    assert (await list_users_page(super_admin, {"x-tenant-id": admin.tenant_id}))["total"] == 1


async def test_the_tenant_header_does_not_widen_a_tenant_admins_list(
    admin: Client, stranger: Client
) -> None:
    assert await list_user_ids(admin, {"x-tenant-id": stranger.tenant_id}) == [admin.user_id]


async def test_inactive_users_are_listed(admin: Client, colleague: Client) -> None:
    await deactivate(admin, colleague.user_id)
    assert colleague.user_id in await list_user_ids(admin)


async def test_the_last_page_has_the_remaining_users(admin: Client, services: Services) -> None:
    await _create_users(services, admin.tenant_id, *[{}] * 4)
    page = await list_users_page(admin, page=3, per_page=2)
    assert (len(page["users"]), page["total"], page["page"], page["per_page"]) == (1, 5, 3, 2)


async def test_a_page_past_the_end_is_empty(admin: Client) -> None:
    page = await list_users_page(admin, page=10_000_000)
    assert (page["users"], page["total"]) == ([], 1)


async def test_a_page_may_have_a_hundred_users(admin: Client, services: Services) -> None:
    await _create_users(services, admin.tenant_id, *[{}] * 100)
    page = await list_users_page(admin, per_page=100)
    assert (len(page["users"]), page["total"]) == (100, 101)


async def test_a_page_out_of_bounds_is_refused(admin: Client, subtests: pytest.Subtests) -> None:
    for name in ("page", "per_page"):
        for value in ("0", "-1", "abc", "", "1.5", "99999999999999999999"):
            with subtests.test(name=name, value=value):
                answer = await admin.get("/users", params={name: value})
                assert answer.status_code == 422
                assert set(answer.json()["error"]["details"]) == {name}


async def test_more_than_a_hundred_on_a_page_is_refused(admin: Client) -> None:
    answer = await admin.get("/users", params={"per_page": 101})
    assert answer.status_code == 422
    assert set(answer.json()["error"]["details"]) == {"per_page"}


async def test_the_newest_come_first(world: World, admin: Client) -> None:
    user_ids = [(await world.user("viewer", admin.tenant_id)).user_id for _ in range(3)]
    assert await list_user_ids(admin) == [*user_ids[::-1], admin.user_id]


SORT_VALUES: dict[str, list[Any]] = {
    "email": ["a", "b", "c"],
    "first_name": ["Ada", "Grace", "Hedy"],
    "last_name": ["Hopper", "Lamarr", "Lovelace"],
    "role": ["agent_developer", "agent_user", "viewer"],
    "status": ["active", "inactive"],
    "last_login_at": [clock.now() - timedelta(days=days) for days in (3, 2, 1)],
    "created_at": [clock.now() - timedelta(days=days) for days in (3, 2, 1)],
}


async def test_a_list_is_sorted_by_the_requested_field(
    world: World, services: Services, subtests: pytest.Subtests
) -> None:
    for descending, field in itertools.product(("", "-"), SORT_VALUES):
        admin = await world.user("tenant_admin")
        with subtests.test(descending=descending, field=field):
            values = SORT_VALUES[field]
            if field == "email":
                values = [f"{letter}.{new_id('x')}@example.com" for letter in values]
            marker = new_id("mark")
            marked_field = "last_name" if field == "first_name" else "first_name"
            user_ids = await _create_users(
                services,
                admin.tenant_id,
                *({marked_field: marker, field: value} for value in values),
            )
            ids = await list_user_ids(admin, search=marker, sort=descending + field)
            assert ids == (user_ids[::-1] if descending else user_ids)


async def test_users_who_never_signed_in_come_last_in_both_orders(
    world: World, services: Services, subtests: pytest.Subtests
) -> None:
    for sort in ("last_login_at", "-last_login_at"):
        admin = await world.user("tenant_admin")
        with subtests.test(sort=sort):
            marker = new_id("mark")
            never, once = await _create_users(
                services,
                admin.tenant_id,
                {"first_name": marker},
                {"first_name": marker, "last_login_at": clock.now()},
            )
            assert await list_user_ids(admin, search=marker, sort=sort) == [once, never]


_INVALID_SORTS: list[str] = [
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
]


async def test_an_unknown_sort_field_is_refused(admin: Client, subtests: pytest.Subtests) -> None:
    for sort in _INVALID_SORTS:
        with subtests.test(sort=sort):
            answer = await admin.get("/users", params={"sort": sort})
            assert answer.status_code == 422
            assert set(answer.json()["error"]["details"]) == {"sort"}


async def test_pages_of_equal_users_neither_repeat_nor_skip(
    world: World, services: Services, subtests: pytest.Subtests
) -> None:
    for sort in ("first_name", "-role", "status", "-last_login_at", "created_at"):
        admin = await world.user("tenant_admin")
        with subtests.test(sort=sort):
            marker = new_id("mark")
            user_ids = await _create_users(services, admin.tenant_id, *[{"last_name": marker}] * 7)
            ids = []
            for page in range(1, 5):
                ids += await list_user_ids(admin, search=marker, sort=sort, page=page, per_page=2)
            assert sorted(ids) == sorted(user_ids)


async def test_a_list_can_be_filtered_by_role(
    world: World, services: Services, subtests: pytest.Subtests
) -> None:
    for role in ROLES:
        admin = await world.user("tenant_admin")
        with subtests.test(role=role):
            marker = new_id("mark")
            user_ids = await _create_users(
                services,
                admin.tenant_id,
                *({"last_name": marker, "role": other_role} for other_role in ROLES),
            )
            assert await list_user_ids(admin, search=marker, role=role) == [
                user_ids[ROLES.index(role)]
            ]


async def test_a_list_can_be_filtered_by_status(
    world: World, services: Services, subtests: pytest.Subtests
) -> None:
    for status, index in (("active", 0), ("inactive", 1)):
        admin = await world.user("tenant_admin")
        with subtests.test(status=status, index=index):
            marker = new_id("mark")
            user_ids = await _create_users(
                services,
                admin.tenant_id,
                {"last_name": marker},
                {"last_name": marker, "status": "inactive"},
            )
            assert await list_user_ids(admin, search=marker, status=status) == [user_ids[index]]


async def test_filters_can_be_combined(admin: Client, services: Services) -> None:
    marker = new_id("mark")
    user_ids = await _create_users(
        services,
        admin.tenant_id,
        {"last_name": marker, "role": "viewer", "status": "inactive"},
        {"last_name": marker, "role": "viewer"},
        {"last_name": marker, "role": "agent_user", "status": "inactive"},
        {"role": "viewer", "status": "inactive"},
    )
    page = await list_users_page(admin, search=marker, role="viewer", status="inactive")
    assert [user["id"] for user in page["users"]] == [user_ids[0]]
    assert page["total"] == 1


async def test_an_unknown_value_of_a_filter_is_refused(
    admin: Client, subtests: pytest.Subtests
) -> None:
    cases: list[tuple[str, str]] = [
        ("role", "owner"),
        ("role", ""),
        ("status", "deleted"),
        ("status", ""),
    ]
    for name, value in cases:
        with subtests.test(name=name, value=value):
            answer = await admin.get("/users", params={name: value})
            assert answer.status_code == 422
            assert set(answer.json()["error"]["details"]) == {name}


async def test_a_search_finds_part_of_an_email_or_a_name_in_any_case(
    world: World, services: Services, subtests: pytest.Subtests
) -> None:
    cases: list[Any] = [str.lower, str.upper]
    for field, change in itertools.product(("email", "first_name", "last_name"), cases):
        admin = await world.user("tenant_admin")
        with subtests.test(field=field, change=change):
            marker = new_id("mark")
            value = f"x.{marker}@example.com" if field == "email" else f"Van {marker} Beek"
            user_ids = await _create_users(services, admin.tenant_id, {field: value}, {})
            assert await list_user_ids(admin, search=change(marker)) == user_ids[:1]


async def test_a_search_takes_text_literally(
    world: World, services: Services, subtests: pytest.Subtests
) -> None:
    for text in ("%", "_", "\\", "a%c", "A_a", ".*", "' OR ''='"):
        admin = await world.user("tenant_admin")
        with subtests.test(text=text):
            user_ids = await _create_users(
                services, admin.tenant_id, {"first_name": f"x{text}y"}, {"first_name": "Ada"}
            )
            assert await list_user_ids(admin, search=text) == user_ids[:1]


async def test_an_empty_search_finds_everybody(admin: Client, colleague: Client) -> None:
    assert len(await list_user_ids(admin, search="")) == 2


async def test_a_search_without_matches_returns_an_empty_list(admin: Client) -> None:
    page = await list_users_page(admin, search=new_id("nobody"))
    assert page == {"users": [], "total": 0, "page": 1, "per_page": 20}


async def test_a_search_that_is_too_long_is_refused(admin: Client) -> None:
    answer = await admin.get("/users", params={"search": "x" * 201})
    assert answer.status_code == 422
    assert set(answer.json()["error"]["details"]) == {"search"}


# Get one


async def test_a_user_is_returned_with_all_fields(admin: Client, colleague: Client) -> None:
    answer = await admin.get(f"/users/{colleague.user_id}")
    assert answer.status_code == 200
    assert set(answer.json()) == USER_KEYS
    assert answer.json() == (await colleague.get("/auth/me")).json()


async def test_super_admin_sees_a_user_of_any_tenant(super_admin: Client, stranger: Client) -> None:
    answer = await super_admin.get(f"/users/{stranger.user_id}")
    assert answer.json()["id"] == stranger.user_id


async def test_a_user_of_another_tenant_is_not_found(admin: Client, stranger: Client) -> None:
    answer = await admin.get(f"/users/{stranger.user_id}")
    assert answer.status_code == 404
    assert answer.json()["error"]["code"] == "user_not_found"


async def test_the_tenant_header_hides_a_user_of_another_tenant(
    super_admin: Client, admin: Client, stranger: Client
) -> None:
    headers = {"x-tenant-id": admin.tenant_id}
    answer = await super_admin.get(f"/users/{stranger.user_id}", headers=headers)
    assert answer.status_code == 404


async def test_a_user_that_does_not_exist_is_404(
    super_admin: Client, subtests: pytest.Subtests
) -> None:
    cases: list[str] = ["usr_nothing", "me", "%", "x" * 500]
    for user_id in cases:
        with subtests.test(user_id=user_id):
            answer = await super_admin.get(f"/users/{user_id}")
            assert answer.status_code == 404
            assert answer.json()["error"]["code"] == "user_not_found"
