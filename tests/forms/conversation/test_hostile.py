"""Hostile answers: each is stored inert or refused, and none makes the server fail."""

import base64
import json
from typing import Any

import pytest

from app.domain.forms.definition.fields.registry import FIELD_TYPES
from app.services import Services
from tests.assertions import refused
from tests.data.tables.api import create_table, list_rows
from tests.forms.api import (
    FILE,
    PATH,
    PUBLIC,
    TEXT,
    TOPIC,
    count_submissions,
    create_form,
    get_submission,
    list_events,
    list_submissions,
    problems,
    save_to,
    send,
    send_as_user,
    submit,
)
from tests.forms.contents import PNG
from tests.forms.manual_worker import TEAM, allow_mails, process, read_mails
from tests.world import Client, World

_HTML = '<img src=x onerror="alert(1)"><script>alert(2)</script>&amp;'
_TYPES = tuple(name for name, kind in FIELD_TYPES.items() if kind.has_value)


def _build_field(kind: str) -> dict[str, Any]:
    options = {"options": TOPIC["options"]} if FIELD_TYPES[kind].has_options else {}
    return {"id": f"f_{kind}", "type": kind, "label": kind, **options}


async def _send_raw(
    client: Client, form: dict[str, Any], body: bytes, **headers: str
) -> tuple[int, dict[str, Any]]:
    answer = await client(
        "POST",
        f"{PUBLIC}/{form['slug']}/submit",
        content=body,
        headers={"content-type": "application/json", **headers},
    )
    return answer.status_code, answer.json()


# Texts


async def test_html_is_stored_as_it_was_sent_and_escaped_in_the_mail(
    developer: Client, anonymous: Client, services: Services
) -> None:
    texts = ("text", "textarea", "hidden")
    await allow_mails(services, developer.tenant_id)
    table = await create_table(developer, [{"name": "Text", "type": "text"}])
    form = await create_form(
        developer,
        *(_build_field(kind) | {"label": f"{_HTML} {kind}"} for kind in texts),
        name=_HTML,
        settings={"notifications": {"email": TEAM}, "success_message": _HTML},
        data_table_config=save_to(table, f_text="Text"),
    )
    data = {f"f_{kind}": _HTML for kind in texts}
    answer = await send(anonymous, form, data, metadata={"source": _HTML, _HTML: _HTML})
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["x-content-type-options"] == "nosniff"
    submission_id = answer.json()["data"]["submission_id"]
    await process(services, submission_id)
    stored = await get_submission(developer, form, submission_id)
    assert (stored["data"], stored["errors"]) == (data, [])
    assert (stored["metadata"][_HTML], stored["metadata"]["source"]) == (_HTML, _HTML)
    ((_, content),) = await read_mails(services, developer.tenant_id)
    assert "<script" not in content.html
    assert "<img src=x" not in content.html
    assert content.html.count("&lt;script&gt;alert(2)") >= 6
    (row,) = (await list_rows(developer, table))["data"]
    assert row["values"] == {"Text": _HTML}


async def test_an_answer_cannot_add_headers_or_templates_to_the_mail(
    developer: Client, anonymous: Client, services: Services
) -> None:
    note = _build_field("textarea") | {"label": "{{ 1234 * 5678 }}"}
    await allow_mails(services, developer.tenant_id)
    form = await create_form(developer, note, settings={"notifications": {"email": TEAM}})
    text = "{{ 1234 * 5678 }} {% for x in y %}\r\nBcc: all@example.com\r\n\r\n<b>"
    submission_id = await submit(anonymous, form, {"f_textarea": text})
    await process(services, submission_id)
    ((recipient, content),) = await read_mails(services, developer.tenant_id)
    assert recipient == TEAM
    assert "{{ 1234 * 5678 }}" in content.text
    assert "7006652" not in content.text
    assert "\n" not in content.subject


async def test_long_answers_are_shortened_in_the_mail(
    developer: Client, anonymous: Client, services: Services
) -> None:
    fields = [
        {**_build_field("textarea"), "id": f"f{n}", "validation": {"max_length": 100_000}}
        for n in range(5)
    ]
    settings = {"notifications": {"email": TEAM}}
    await allow_mails(services, developer.tenant_id)
    form = await create_form(developer, *fields, settings=settings)
    submission_id = await submit(anonymous, form, {f"f{n}": "<" * 100_000 for n in range(5)})
    await process(services, submission_id)
    ((_, content),) = await read_mails(services, developer.tenant_id)
    assert 5 * 2000 <= content.text.count("<") < 5 * 2100


async def test_characters_that_cannot_be_stored_are_refused(
    developer: Client, anonymous: Client, subtests: pytest.Subtests
) -> None:
    form = await create_form(developer, _build_field("textarea"))
    cases = {
        "NUL": b'{"data": {"f_textarea": "a\\u0000b"}}',
        "raw NUL": b'{"data": {"f_textarea": "a\0b"}}',
        "NUL in a key": b'{"data": {"a\\u0000b": 1}}',
        "lone surrogate": b'{"data": {"f_textarea": "a\\ud800b"}}',
        "surrogates in the wrong order": b'{"data": {"f_textarea": "\\udc00\\ud800"}}',
        "surrogate in metadata": b'{"data": {}, "metadata": {"a": "\\ud800"}}',
        "not UTF-8": b'{"data": {"f_textarea": "\xff\xfe"}}',
        "overlong UTF-8": b'{"data": {"f_textarea": "\xc0\x80"}}',
        "UTF-16": '{"data": {}}'.encode("utf-16"),
        "no JSON": b"name=Ada",
        "nothing": b"",
        "NaN": b'{"data": {"f_textarea": NaN}}',
    }
    for name, body in cases.items():
        with subtests.test(name):
            status, answer = await _send_raw(anonymous, form, body)
            assert (status, answer["error"]["code"]) in {
                (400, "validation_error"),
                (422, "validation_error"),
            }
    assert await count_submissions(developer, form) == 0


async def test_unusual_characters_are_kept(developer: Client, anonymous: Client) -> None:
    form = await create_form(developer, _build_field("textarea"))
    text = "\u202eabc\u202c \ufeff\U0001f468\u200d\U0001f469 \x1b[31m \x7f e\u0301 \U0010ffff"
    submission_id = await submit(anonymous, form, {"f_textarea": text})
    stored = await get_submission(developer, form, submission_id)
    assert stored["data"] == {"f_textarea": text}
    (listed,) = await list_submissions(developer, form, search="\U0010ffff")
    assert listed["id"] == submission_id


# Values of the wrong shape


async def test_no_value_of_any_field_makes_the_server_fail(
    developer: Client, subtests: pytest.Subtests
) -> None:
    signature = "data:image/png;base64," + base64.b64encode(PNG).decode()
    values: list[Any] = [
        *(None, "", " ", "x", "x" * 50_000, "\n", "\U0010ffff", "-1", "1e400", "0x10", "٣"),
        *(0, -1, 1.5, 1e308, -1e308, 5e-324, 2**63, 2**64, -(2**63), 10**30, True, False),
        *([], {}, [[]], [None], [{}], ["x"] * 5000, [1, "a", None], {"a": {"b": 1}}),
        *("9999-12-31", "0000-00-00", "2026-02-30", "9999-12-31T23:59:59.999999-14:00"),
        *("a@b", "@", "a@[127.0.0.1]", "a" * 300 + "@example.com", "ä@ö.example"),
        *("http://[", "http://[::1]:99999", "javascript:alert(1)", "http://a:b@c.example/"),
        *("fil_" + "a" * 60, "fil_\u0660", signature, signature + "!", signature[:-5]),
        *("sales", ["sales", "sales"], ["sales", {}], {"sales": True}),
    ]
    form = await create_form(developer, *map(_build_field, _TYPES))
    fields = {f"f_{kind}" for kind in _TYPES}
    for value in values:
        with subtests.test(value=str(value)[:40]):
            open_fields = fields
            while True:
                data = dict.fromkeys(open_fields, value)
                answer = await send_as_user(developer, form, data)
                if answer.status_code == 201:
                    break
                # The others are sent again, so that each type stores it or refuses it.
                wrong = problems(answer).keys()
                assert wrong
                assert wrong <= open_fields
                open_fields = open_fields - wrong


async def test_deep_json_is_refused(
    developer: Client, world: World, subtests: pytest.Subtests
) -> None:
    form = await create_form(developer)
    # A visitor for each size, because of the limit per address.
    for levels in (100, 1000, 10_000, 200_000):
        visitor = world.anonymous()
        lists, objects = b"[" * levels + b"]" * levels, b'{"a":' * levels + b"1" + b"}" * levels
        for inner in (lists, objects):
            for body in (
                b'{"data": {"name": ' + inner + b"}}",
                b'{"data": ' + inner + b"}",
                b'{"data": {"name": "Ada"}, "metadata": {"a": ' + inner + b"}}",
                inner,
                inner[: len(inner) // 2],
            ):
                with subtests.test(levels=levels, start=body[:40]):
                    status, _ = await _send_raw(visitor, form, body)
                    # A body of more than a megabyte is refused for its size.
                    assert status in {400, 413, 422}
    assert await count_submissions(developer, form) == 0


async def test_huge_numbers_are_refused_or_stored_as_numbers(
    developer: Client, subtests: pytest.Subtests
) -> None:
    form = await create_form(developer, _build_field("number"), _build_field("hidden"))
    path = f"{PATH}/{form['id']}/submit"
    for text in ("9" * 400, "1e400", "-1e400", "1e-400", "1" + "0" * 5000, "0." + "0" * 5000 + "1"):
        for key in ("f_number", "f_hidden"):
            with subtests.test(key=key, start=text[:10]):
                body = f'{{"data": {{"{key}": {text}}}}}'.encode()
                headers = {"content-type": "application/json"}
                answer = await developer("POST", path, content=body, headers=headers)
                assert answer.status_code in {201, 400, 422}, answer.text
    for stored in await list_submissions(developer, form):
        assert all(isinstance(value, int | float) for value in stored["data"].values())


async def test_of_two_values_with_one_key_the_last_one_counts(
    developer: Client, anonymous: Client
) -> None:
    form = await create_form(developer)
    body = b'{"data": {"name": "Ada"}, "data": {"name": 1, "name": "Bob"}}'
    status, answer = await _send_raw(anonymous, form, body)
    assert status == 201
    stored = await get_submission(developer, form, answer["data"]["submission_id"])
    assert stored["data"] == {"name": "Bob"}


# Sizes


async def test_a_text_of_a_megabyte_is_refused(developer: Client, anonymous: Client) -> None:
    form = await create_form(developer, TEXT)
    status, answer = await _send_raw(
        anonymous, form, json.dumps({"data": {"name": "x" * 1_000_000}}).encode()
    )
    assert (status, answer["error"]["code"]) == (400, "validation_error")
    assert len(answer["error"]["message"]) < 1000
    status, answer = await _send_raw(
        anonymous, form, json.dumps({"data": {"x" * 1_000_000: 1}}).encode()
    )
    assert status == 400
    assert len(json.dumps(answer)) < 2000


async def test_a_body_over_the_limit_is_refused(
    developer: Client, anonymous: Client, subtests: pytest.Subtests
) -> None:
    form = await create_form(developer)
    body = json.dumps({"data": {"name": "x" * 1024 * 1024}}).encode()
    for client, path in (
        (anonymous, f"{PUBLIC}/{form['slug']}/submit"),
        (developer, f"{PATH}/{form['id']}/submit"),
    ):
        with subtests.test(path=path):
            headers = {"content-type": "application/json"}
            answer = await client("POST", path, content=body, headers=headers)
            refused(answer, 413, "payload_too_large")


async def test_a_form_of_200_fields_takes_all_answers(
    developer: Client, anonymous: Client, services: Services
) -> None:
    """Each depends on the one before it."""
    fields: list[dict[str, Any]] = [
        {
            "id": f"f{n}",
            "type": "text",
            "label": f"Field {n}",
            "required": True,
            "conditional": {"field": f"f{n - 1}", "operator": "is_not_empty"} if n else None,
        }
        for n in range(200)
    ]
    form = await create_form(developer, *reversed(fields))
    data = {f"f{n}": "x" * 1000 for n in range(200)}
    submission_id = await submit(anonymous, form, data)
    assert (await get_submission(developer, form, submission_id))["data"] == data
    assert (await process(services, submission_id))["state"] == "done"
    assert problems(await send(anonymous, form, {"f0": "x"})) == {"f1": "is required"}
    (event,) = await list_events(developer, "form.submission.created")
    assert event["data"] is None


async def test_thousands_of_unknown_keys_have_a_short_answer(
    developer: Client, anonymous: Client
) -> None:
    form = await create_form(developer)
    answer = await send(anonymous, form, {f"key{n}": n for n in range(20_000)})
    assert len(problems(answer)) <= 100
    assert len(answer.content) < 20_000


async def test_paths_and_ids_of_any_kind_are_not_found(
    developer: Client, anonymous: Client, subtests: pytest.Subtests
) -> None:
    form = await create_form(developer, TEXT, FILE)
    for text in ("%00", "..%2F..", "%F0%9F%8E%89", "a" * 3000, "'%20OR%201=1", "%ff"):
        for client, path in (
            (anonymous, f"{PUBLIC}/{text}"),
            (developer, f"{PATH}/{form['id']}/submissions/{text}"),
            (developer, f"{PATH}/{form['id']}/files/{text}"),
        ):
            with subtests.test(path=path[:80]):
                answer = await client.get(path)
                assert answer.status_code in {400, 404, 414, 422}, answer.text
