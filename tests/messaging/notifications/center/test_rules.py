"""Which events users are notified of without a subscription, and who gets each of them."""

from typing import Any

import pytest

from app.areas import AREAS
from app.domain.agents.sources.events import SourceFailed
from app.domain.agents.vault.events import CredentialInvalid
from app.domain.identity.accounts.events import PasswordChanged
from app.domain.messaging.deliveries.events import WebhookDisabled
from app.domain.messaging.notifications import messages
from app.domain.messaging.notifications.rules import RULES, Rule, type_of
from app.domain.messaging.notifications.types import Recipients
from app.domain.platform.events import service as events
from app.domain.platform.events.queries import NOTIFIED_TYPES
from app.kit.ids import new_id
from tests.database import fetch_rows, run_sql
from tests.identity.accounts.api_calls import change_password
from tests.messaging.deliveries.receiver import run_receiver
from tests.messaging.notifications.center.api import list_notifications, list_titles
from tests.messaging.notifications.center.post_office import PostOffice, text_of
from tests.messaging.webhooks.factories import create_webhook
from tests.platform.events.responses import post_json
from tests.world import Client

ANN = Recipients(user_ids=["usr_ann"])
ADMINS = Recipients(role="tenant_admin")
# The type of notification, and who gets it for which data.
ROWS: dict[str, tuple[str, list[tuple[dict[str, Any], Recipients | None]]]] = {
    "form.submission.created": (
        "form_submission",
        [({"owner_id": "usr_ann"}, ANN), ({"owner_id": None}, None), ({}, None)],
    ),
    "workflow.execution.completed": (
        "workflow_completed",
        [
            ({"started_by": "usr_ann", "owner_id": "usr_bob"}, ANN),
            ({"started_by": None, "owner_id": "usr_bob"}, None),
        ],
    ),
    "workflow.execution.failed": (
        "workflow_failed",
        [
            ({"started_by": "usr_ann", "owner_id": "usr_bob"}, ANN),
            ({"started_by": None, "owner_id": "usr_ann"}, ANN),
            ({"started_by": "", "owner_id": "usr_ann"}, ANN),
            ({"trigger": "event", "owner_id": "usr_ann"}, ANN),
            ({"trigger": "workflow", "started_by": None, "owner_id": "usr_ann"}, None),
            ({}, None),
        ],
    ),
    "approval.requested": (
        "approval_requested",
        [
            ({"user_ids": ["usr_ann", "usr_bob"]}, Recipients(user_ids=["usr_ann", "usr_bob"])),
            ({"role": "viewer"}, Recipients(role="viewer")),
            ({"user_ids": [], "role": "viewer"}, Recipients(role="viewer")),
            ({"user_ids": ["usr_ann"], "role": "viewer"}, ANN),
            ({"user_ids": None, "role": None}, None),
        ],
    ),
    "system.webhook.disabled": (
        "webhook_disabled",
        [({"owner_id": "usr_ann"}, ANN), ({"owner_id": None}, ADMINS)],
    ),
    "system.credential.invalid": ("credential_invalid", [({"name": "Key"}, ADMINS)]),
    **{
        f"system.source.{name}": (
            "document_source",
            [({"owner_id": "usr_ann"}, ANN), ({"owner_id": None}, ADMINS)],
        )
        for name in ("changes_found", "failed")
    },
    "system.storage.warning": ("storage_quota", [({"percent": 80}, ADMINS)]),
    **{
        f"system.user.{name}": ("security", [({"user_id": "usr_ann"}, ANN), ({}, None)])
        for name in (
            "mfa_device_added",
            "mfa_device_removed",
            "mfa_disabled",
            "mfa_enabled",
            "mfa_reset",
            "password_changed",
            "recovery_code_used",
            "recovery_codes_replaced",
            "sign_in_blocked",
        )
    },
}
EXISTING = sorted(set(RULES) & set(AREAS.event_types))
URL = "https://example.com"
_TITLE = f"A webhook was disabled: {URL}"


def _disabled(owner_id: str | None) -> WebhookDisabled:
    return WebhookDisabled("whk_1", URL, "gone", owner_id=owner_id)


def test_the_rules_are_for_the_events_that_are_always_fanned_out() -> None:
    assert set(ROWS) == set(RULES) == set(NOTIFIED_TYPES)
    # The others belong to areas that this instance does not have yet.
    missing = set(RULES) - set(EXISTING)
    assert {name.partition(".")[0] for name in missing} <= {"form", "workflow", "approval"}


def test_a_rule_names_the_type_and_the_recipients(subtests: pytest.Subtests) -> None:
    for event_type, (name, cases) in ROWS.items():
        with subtests.test(event_type):
            assert RULES[event_type].type == name
            for data, recipients in cases:
                assert RULES[event_type].recipients(data) == recipients, data


class _RecordedKeys(dict[str, Any]):
    def __init__(self, data: dict[str, Any]) -> None:
        super().__init__(data)
        self.keys_read: set[str] = set()

    def get(self, key: str, default: Any = None) -> Any:
        self.keys_read.add(key)
        return super().get(key, default)


def test_the_example_of_an_event_has_recipients_and_all_values(subtests: pytest.Subtests) -> None:
    for event_type in EXISTING:
        with subtests.test(event_type=event_type):
            rule, example = RULES[event_type], AREAS.event_types[event_type].example()
            assert rule.recipients(example) is not None
            data = _RecordedKeys(example)
            for write in (rule.title, rule.message):
                assert write(data).strip()
            assert data.keys_read <= example.keys()


def test_a_missing_reason_is_replaced() -> None:
    for event_type, text in (
        ("workflow.execution.failed", "no reason is known"),
        ("approval.requested", "Somebody is waiting for your decision."),
    ):
        for data in ({}, {"error": None, "message": None}):
            assert text in RULES[event_type].message(data), data


def test_the_texts_depend_on_the_data(subtests: pytest.Subtests) -> None:
    webhook, storage = RULES["system.webhook.disabled"], RULES["system.storage.warning"]
    changes = RULES["system.source.changes_found"]
    cases: list[tuple[Rule, dict[str, Any], str]] = [
        (webhook, {"webhook_id": "whk_1"}, "The webhook whk_1 delivers no more events to . Every"),
        (
            webhook,
            {"subscription_id": "sub_1", "url": URL},
            f"The subscription sub_1 delivers no more events to {URL}. Every",
        ),
        (webhook, {"reason": "gone"}, "The endpoint answered 410 Gone,"),
        (storage, {"percent": 100, "largest": "files"}, "Nothing more can be stored until"),
        (
            storage,
            {"percent": 80, "largest": "files"},
            "nothing more can be stored. Most of it is used by files. GET",
        ),
    ]
    cases += [
        (changes, {"reason": "review", "added": 2}, "is reviewed: 2 added, 0 changed, 0 removed."),
        (changes, {"reason": "mass_removal", "removed": 9}, "0 changed, 9 removed. Nothing"),
    ]
    for rule, data, text in cases:
        with subtests.test(text):
            assert text in rule.message(data)
    assert storage.title({"percent": 80}) == "80 percent of the storage quota is used"


def test_a_subscription_cannot_send_in_the_name_of_the_platform(subtests: pytest.Subtests) -> None:
    for event_type, expected in [
        ("workflow.execution.failed", "workflow_failed"),
        ("form.submission.created", "form_submission"),
        ("system.webhook.disabled", "message"),
        ("system.user.password_changed", "message"),
        ("agent.created", "message"),
    ]:
        with subtests.test(event_type=event_type, expected=expected):
            assert type_of(event_type) == expected


async def _emit(office: PostOffice, event: Any) -> str:
    async with office.services.db.tx(office.tenant_id) as tx:
        event_id = await events.emit(tx, event, tenant_id=office.tenant_id)
    await office.wait_until_idle()
    return event_id


async def _accept(office: PostOffice, event_type: str, data: dict[str, Any]) -> bool:
    """Applies the rule of an event of an area that this instance does not have yet."""
    event: Any = {"event_id": new_id("evt"), "event_type": event_type, "test": False}
    async with office.services.db.tx(office.tenant_id) as tx:
        is_accepted = await messages.accept_for_event(tx, office.tenant_id, event, data)
    await office.wait_until_idle()
    return is_accepted


async def test_the_owner_is_notified_with_the_data_of_the_event(office: PostOffice) -> None:
    owner = await office.user()
    event_id = await _emit(office, _disabled(owner.user_id))
    (item,) = await list_notifications(owner)
    assert (item["type"], item["title"]) == ("webhook_disabled", _TITLE)
    assert item["data"] == {
        "webhook_id": "whk_1",
        "url": URL,
        "reason": "gone",
        "subscription_id": None,
        "owner_id": owner.user_id,
        "event_id": event_id,
        "event_type": "system.webhook.disabled",
    }
    assert await list_titles(office.admin) == []


async def test_the_administrators_are_notified_where_there_is_no_owner(office: PostOffice) -> None:
    second, viewer = await office.user("tenant_admin"), await office.user()
    await _emit(office, _disabled(None))
    counts = [len(await list_titles(user)) for user in (office.admin, second, viewer)]
    assert counts == [1, 1, 0]


async def test_the_administrators_are_notified_of_an_invalid_credential(
    office: PostOffice,
) -> None:
    await _emit(office, CredentialInvalid("crd_1", "Mail key", "api_key", "expired"))
    (item,) = await list_notifications(office.admin)
    assert item["title"] == "A credential no longer works: Mail key"
    assert "was refused: expired." in item["message"]


async def test_who_created_a_source_is_notified_when_it_fails(office: PostOffice) -> None:
    owner = await office.user()
    names = ("agt_1", "src_1", "Help")
    await _emit(office, SourceFailed(*names, f"{URL} cannot be read", 3, owner.user_id))
    (item,) = await list_notifications(owner)
    assert item["title"] == "A source of documents fails: Help"
    assert item["message"] == f"{URL} cannot be read. Its documents stay as they are."
    assert await list_titles(office.admin) == []


async def test_the_administrators_are_notified_where_the_owner_is_gone(
    office: PostOffice, subtests: pytest.Subtests
) -> None:
    cases: dict[str, str] = {
        "deleted": "DELETE FROM users WHERE id = $1",
        "inactive": "UPDATE users SET status = 'inactive' WHERE id = $1",
    }
    for name, sql in cases.items():
        office = await office.reopen()
        with subtests.test(name):
            owner = await office.user()
            await run_sql(office.services, sql, owner.user_id)
            await _emit(office, _disabled(owner.user_id))
            assert await list_titles(office.admin) == [_TITLE]


async def test_nobody_else_is_notified_of_the_account_of_a_user_who_is_gone(
    office: PostOffice,
) -> None:
    user = await office.user()
    await run_sql(office.services, "DELETE FROM users WHERE id = $1", user.user_id)
    await _emit(office, PasswordChanged(user.user_id, "change"))
    assert await list_titles(office.admin) == []


async def test_fanning_out_twice_notifies_once(office: PostOffice) -> None:
    owner = await office.user()
    await _emit(office, _disabled(owner.user_id))
    assert await office.run_again("events.fan_out") == 1
    assert len(await list_titles(owner)) == 1


async def test_a_test_event_notifies_nobody(office: PostOffice) -> None:
    body = {"event_type": "system.webhook.disabled", "data": {"owner_id": office.admin.user_id}}
    await post_json(office.admin, "/api/v1/events/test", body, 202)
    await office.wait_until_idle()
    sql = "SELECT state FROM work WHERE tenant_id = $1 AND kind = 'events.fan_out'"
    assert await fetch_rows(office.services, sql, office.tenant_id) == [{"state": "done"}]
    assert await list_titles(office.admin) == []


async def test_a_user_of_another_tenant_is_never_notified(
    office: PostOffice, developer: Client
) -> None:
    await _emit(office, _disabled(developer.user_id))
    assert await list_titles(developer) == []


async def test_a_title_is_one_line(office: PostOffice) -> None:
    data = {"owner_id": office.admin.user_id, "form_name": "Two\n  lines\u2028more"}
    assert await _accept(office, "form.submission.created", data)
    assert await list_titles(office.admin) == ["New submission: Two lines more"]


async def test_a_long_title_is_cut(office: PostOffice) -> None:
    data = {"user_ids": [office.admin.user_id], "title": "x" * 5000, "message": "y" * 50_000}
    assert await _accept(office, "approval.requested", data)
    (item,) = await list_notifications(office.admin)
    assert (len(item["title"]), len(item["message"])) == (200, 10_000)


# End to end


async def test_a_changed_password_is_in_the_center_and_mailed_once(office: PostOffice) -> None:
    user = await office.user()
    assert (await change_password(user)).status_code == 200
    await office.wait_until_idle()
    (item,) = await list_notifications(user)
    assert (item["type"], item["title"]) == ("security", "Your account changed")
    assert len(await office.own_mails(user)) == 1


async def test_a_disabled_webhook_is_in_the_center_of_its_owner_and_mailed_once(
    office: PostOffice,
) -> None:
    owner = await office.user("agent_developer")
    async with run_receiver() as receiver:
        url = f"{receiver.url}/410"
        webhook = await create_webhook(owner, url=url, events=["system.webhook.created"])
        await create_webhook(owner, url="https://example.com/", events=["agent.created"])
        await office.wait_until_idle()
    (item,) = await list_notifications(owner)
    assert item["type"] == "webhook_disabled"
    assert item["data"]["event_type"] == WebhookDisabled.type
    assert f"The webhook {webhook['id']} delivers no more events" in item["message"]
    assert "410 Gone" in item["message"]
    (mail,) = await office.own_mails(owner)
    assert webhook["id"] in text_of(mail)
