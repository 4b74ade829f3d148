"""Bodies of forms: which values are refused, and by which field of the answer."""

from collections.abc import Iterator
from itertools import product
from typing import Any

import msgspec
import pytest

from app.domain.forms.definition.schemas import CreateForm, UpdateForm
from app.kit import validation
from app.kit.errors import Invalid
from tests.assertions import refused
from tests.forms.api import PATH, PUBLIC, TEXT, get_form, request_form, send
from tests.world import Client

BODY: dict[str, Any] = {"name": "Contact", "fields": [TEXT]}
SECTION = {"id": "part", "type": "section", "label": "Part"}
WRONG_ADDRESSES = (
    "javascript:alert(1)",
    "JavaScript:alert(1)",
    "data:text/html,<script>",
    "//example.com/x",
    "ftp://example.com",
    "https:example.com",
    "https://",
    "https:///path",
    "https://?x",
    "https://#x",
    "example.com",
    "",
    " https://example.com",
    "https://example.com\n",
    "https://exa mple.com",
    'https://example.com/"onload="x',
    "https://example.com/'x",
    "https://example.com/<b>",
    "https://example.com\\@evil.example",
    f"https://example.com/{'x' * 2000}",
    5,
    ["https://example.com"],
)
WRONG_COLORS = ("red", "#fff", "#12345g", "#1234567", "123456", "#123456\n", "", 0x1A73E8)
# By the path of the value in the body, and in `details`.
WRONG_VALUES: dict[str, tuple[Any, ...]] = {
    "name": ("", " ", "x" * 101, "two\nlines", "tab\there", None, 5),
    "description": ("x" * 2001, None, 5),
    "fields": (None, {}, "text", [], [TEXT] * 1001),
    "settings": (None, [], "x"),
    "settings.submit_button_text": ("", " ", "x" * 101, "a\nb", None),
    "settings.success_message": ("", "x" * 1001, None),
    "settings.redirect_url": WRONG_ADDRESSES,
    "settings.notifications": (None, "team@example.com"),
    "settings.notifications.email": ("x", "a@b", "a b@example.com", "x" * 255, ["a@example.com"]),
    "settings.notifications.emails": ("a@example.com",),
    "settings.max_submissions": (0, -1, 1_000_000_001, 1.5, "5", True),
    "settings.closes_at": ("tomorrow", "2026-01-01", "2026-01-01T00:00:00", 1767225600, ""),
    "settings.conversation": (None, "x"),
    "settings.conversation.model": ("", "x" * 201, 5),
    "settings.conversation.greeting": ("x" * 501, None),
    "settings.color": ("#ffffff",),
    "branding": (None, []),
    "branding.logo_url": WRONG_ADDRESSES,
    "branding.primary_color": WRONG_COLORS,
    "branding.background_color": WRONG_COLORS,
    "branding.font": ("Arial",),
    "workflow_id": ("", "x" * 65, 5, []),
    "data_table_config": ([], "tbl_1", {}),
    "data_table_config.table_id": ("", "x" * 65, None),
    "data_table_config.auto_save": ("yes", None, 1),
    "data_table_config.field_mapping": ([], None),
    "data_table_config.field_mapping.name": ("", "x" * 101, 5),
    "data_table_config.mapping": ({},),
}
# Checked with what depends on them, not by the struct.
CHECKED_LATER = {
    ("fields", "[]"),
    *(("settings.notifications.email", f'"{x}"') for x in ("x", "a@b", "a b@example.com")),
}


def _build(path: str, value: Any) -> dict[str, Any]:
    """Returns a body with this value at this path."""
    names = path.split(".")
    parts: dict[str, Any] = {"data_table_config": {"table_id": "tbl_1"}}
    body: Any = {**BODY, **({names[0]: parts.get(names[0], {})} if len(names) > 1 else {})}
    target = body
    for name in names[:-1]:
        target[name] = dict(target.get(name, {}))
        target = target[name]
    target[names[-1]] = value
    result: dict[str, Any] = body
    return result


def _list_wrong_values() -> Iterator[tuple[str, Any]]:
    for path, values in WRONG_VALUES.items():
        for value in values:
            if (path, msgspec.json.encode(value).decode()) not in CHECKED_LATER:
                yield path, value


def test_a_wrong_value_is_refused_with_its_path(subtests: pytest.Subtests) -> None:
    kinds: list[type[msgspec.Struct]] = [CreateForm, UpdateForm]
    for kind, (path, value) in product(kinds, _list_wrong_values()):
        with subtests.test(kind=kind.__name__, path=path, value=str(value)[:40]):
            with pytest.raises(Invalid) as error:
                validation.decode(msgspec.json.encode(_build(path, value)), kind)
            (problem,) = error.value.details or {}
            assert problem.startswith(path) or (path, value) == ("data_table_config", {})


def test_only_the_workflow_and_the_table_can_be_removed(subtests: pytest.Subtests) -> None:
    for name in ("name", "fields", "description", "settings", "branding"):
        with subtests.test(name=name), pytest.raises(Invalid):
            validation.decode(msgspec.json.encode({name: None}), UpdateForm)
    data = validation.decode(b'{"workflow_id": null, "data_table_config": null}', UpdateForm)
    assert validation.set_fields(data) == {"workflow_id": None, "data_table_config": None}


def test_name_and_fields_are_required_of_a_new_form() -> None:
    with pytest.raises(Invalid) as error:
        validation.decode(b"{}", CreateForm)
    assert set(error.value.details or {}) == {"name", "fields"}


async def test_a_wrong_body_changes_nothing(developer: Client, subtests: pytest.Subtests) -> None:
    form = await request_form(developer)
    before = await get_form(developer, form)
    wrong: dict[str, dict[str, Any]] = {
        "name": {"name": ""},
        "fields": {"fields": []},
        "fields.0.type": {"fields": [{**TEXT, "type": "none"}]},
        "fields.0.color": {"fields": [{**TEXT, "color": "red"}]},
        "fields.1.id": {"fields": [TEXT, TEXT]},
        "fields.0.validation.min": {"fields": [{**TEXT, "validation": {"min": 1}}]},
        "settings.redirect_url": {"settings": {"redirect_url": "javascript:alert(1)"}},
        "settings.notifications.email": {"settings": {"notifications": {"email": "a b@x.com"}}},
        "settings.unknown": {"settings": {"unknown": 1}},
        "branding.primary_color": {"branding": {"primary_color": "red"}},
        "branding.logo_url": {"branding": {"logo_url": "javascript:alert(1)"}},
    }
    for path, part in wrong.items():
        with subtests.test(path=path):
            for answer in (
                await developer.post(PATH, {**BODY, **part}),
                await developer.put(f"{PATH}/{form['id']}", {"description": "New", **part}),
            ):
                details = refused(answer, 422, "validation_error")["details"]
                assert list(details) == [path]
    only_static = {**BODY, "fields": [SECTION]}
    details = refused(await developer.post(PATH, only_static), 422, "validation_error")["details"]
    assert details == {"fields": "must have at least one field that is answered"}
    assert await get_form(developer, form) == before


async def test_all_wrong_values_of_a_body_are_reported_at_once(developer: Client) -> None:
    body = {"name": "", "fields": [{**TEXT, "id": "1"}], "branding": {"primary_color": "red"}}
    details = refused(await developer.post(PATH, body), 422, "validation_error")["details"]
    assert set(details) == {"name", "fields.0.id", "branding.primary_color"}
    assert details["branding.primary_color"] == "must be a color like #1a73e8"


async def test_a_form_can_close_at_any_time(
    developer: Client, anonymous: Client, subtests: pytest.Subtests
) -> None:
    times = {"0001-01-01T00:00:00+14:00": 409, "9999-12-31T23:59:59-12:00": 201}
    for closes_at, status in times.items():
        with subtests.test(closes_at=closes_at):
            form = await request_form(developer, settings={"closes_at": closes_at})
            assert form["settings"]["closes_at"] == closes_at
            shown = await anonymous.get(f"{PUBLIC}/{form['slug']}")
            assert shown.json()["data"]["settings"]["closes_at"] == closes_at
            assert (await send(anonymous, form, {"name": "Ada"})).status_code == status
