"""Where submissions come from, and what callers may say about them."""

from datetime import timedelta
from typing import Any

import pytest

from app.kit import clock
from app.services import Services
from tests.assertions import refused
from tests.database import fetch_rows
from tests.forms.api import (
    create_form,
    get_submission,
    send,
    send_as_user,
    submit,
)
from tests.world import Client

_HEADERS = {
    "user-agent": "Browser/1.0",
    "referer": "https://shop.example.com/contact",
    "x-page-referrer": "https://search.example.com/",
}
_FORGED = {
    "ip_address": "203.0.113.7",
    "user_agent": "Forged/1.0",
    "page_url": "https://forged.example.com",
    "referrer": "https://forged.example.com",
}


async def _read_metadata(owner: Client, form: dict[str, Any], submission_id: str) -> dict[str, Any]:
    stored = await get_submission(owner, form, submission_id)
    metadata: dict[str, Any] = stored["metadata"]
    return metadata


async def test_callers_add_metadata_but_replace_none_of_ours(
    developer: Client, anonymous: Client
) -> None:
    form = await create_form(developer)
    metadata = {**_FORGED, "campaign": "spring", "tags": ["a", {"b": 1}]}
    submission_id = await submit(
        anonymous, form, {"name": "Ada"}, metadata=metadata, headers=_HEADERS
    )
    assert await _read_metadata(developer, form, submission_id) == {
        "campaign": "spring",
        "tags": ["a", {"b": 1}],
        "ip_address": anonymous.address,
        "user_agent": "Browser/1.0",
        "page_url": "https://shop.example.com/contact",
        "referrer": "https://search.example.com/",
        "source": "public",
    }


async def test_the_metadata_of_users_is_that_of_their_request(developer: Client) -> None:
    form = await create_form(developer)
    answer = await send_as_user(
        developer, form, {"name": "Ada"}, metadata=_FORGED, headers=_HEADERS
    )
    submission_id = answer.json()["data"]["submission_id"]
    metadata = await _read_metadata(developer, form, submission_id)
    assert metadata == {
        "ip_address": developer.address,
        "user_agent": "Browser/1.0",
        "page_url": "https://shop.example.com/contact",
        "referrer": "",
        "source": "api",
    }


async def test_the_source_is_the_callers_or_else_the_way_it_came(
    developer: Client, anonymous: Client, services: Services, subtests: pytest.Subtests
) -> None:
    form = await create_form(developer)
    own = services.settings.public_url
    cases: list[tuple[dict[str, str], dict[str, Any], str]] = [
        ({}, {}, "public"),
        ({"origin": own}, {}, "public"),
        ({"origin": "http://parley.test"}, {}, "public"),
        ({"origin": "https://shop.example.com"}, {}, "embed"),
        ({"origin": "null"}, {}, "embed"),
        ({"origin": "https://shop.example.com"}, {"source": "newsletter"}, "newsletter"),
        ({}, {"source": "  "}, "public"),
        ({}, {"source": None}, "public"),
    ]
    for headers, metadata, source in cases:
        with subtests.test(headers=headers, metadata=metadata):
            submission_id = await submit(
                anonymous, form, {"name": "Ada"}, metadata=metadata, headers=headers
            )
            found = await _read_metadata(developer, form, submission_id)
            assert found["source"] == source


async def test_the_page_is_the_origin_where_a_browser_sends_no_address(
    developer: Client, anonymous: Client
) -> None:
    form = await create_form(developer)
    headers = {"origin": "https://shop.example.com"}
    submission_id = await submit(anonymous, form, {"name": "Ada"}, headers=headers)
    metadata = await _read_metadata(developer, form, submission_id)
    assert metadata["page_url"] == "https://shop.example.com"


async def test_long_headers_are_shortened(developer: Client, anonymous: Client) -> None:
    form = await create_form(developer)
    headers = {"user-agent": "x" * 5000, "referer": "https://example.com/" + "y" * 5000}
    submission_id = await submit(anonymous, form, {"name": "Ada"}, headers=headers)
    metadata = await _read_metadata(developer, form, submission_id)
    assert (len(metadata["user_agent"]), len(metadata["page_url"])) == (2000, 2000)


async def test_metadata_beyond_its_limits_is_refused(
    developer: Client, subtests: pytest.Subtests
) -> None:
    form = await create_form(developer)
    deep: Any = 1
    for _ in range(11):
        deep = {"a": deep}
    cases: list[tuple[dict[str, Any], str]] = [
        ({"text": "x" * 16 * 1024}, "metadata"),
        (deep, "metadata"),
        ({"source": "x" * 101}, "metadata.source"),
        ({"source": ["newsletter"]}, "metadata.source"),
    ]
    for metadata, field in cases:
        with subtests.test(field=field, size=len(str(metadata))):
            answer = await send_as_user(developer, form, {"name": "Ada"}, metadata=metadata)
            error = refused(answer, 422, "validation_error")
            assert set(error["details"]) == {field}
    answer = await send_as_user(developer, form, {"name": "Ada"}, metadata={"t": "x" * 16_000})
    assert answer.status_code == 201


async def test_the_time_that_it_took_is_stored_unless_it_cannot_be_right(
    developer: Client, anonymous: Client, services: Services, subtests: pytest.Subtests
) -> None:
    form = await create_form(developer)
    now = clock.now()
    cases = [
        (now - timedelta(seconds=90), 90),
        (now, 0),
        (now + timedelta(hours=1), None),
        (now - timedelta(days=31), None),
        (None, None),
    ]
    sql = "SELECT completion_seconds FROM form_submissions WHERE id = $1"
    for started_at, seconds in cases:
        with subtests.test(started_at=started_at), clock.frozen(now):
            more = {"started_at": started_at.isoformat()} if started_at else {}
            submission_id = await submit(anonymous, form, {"name": "Ada"}, **more)
            (row,) = await fetch_rows(services, sql, submission_id)
            assert row["completion_seconds"] == seconds


async def test_times_at_the_ends_of_the_calendar_are_accepted(
    developer: Client, anonymous: Client
) -> None:
    form = await create_form(developer)
    for moment in ("0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"):
        answer = await send(anonymous, form, {"name": "Ada"}, started_at=moment)
        assert answer.status_code in {201, 422}, answer.text
