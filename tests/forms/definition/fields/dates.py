"""Cases of the types of fields in app/domain/forms/definition/fields/dates.py."""

import re
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

from hypothesis import strategies as st

from tests.forms.definition.fields.protocol import REFUSED, Cases, Json
from tests.forms.definition.fields.strategies import generate_range

_DATES = st.dates().map(str)
_ZONES = st.sampled_from(
    [UTC, timezone(timedelta(hours=5, minutes=30)), timezone(-timedelta(hours=9))]
)
_TIMES = st.datetimes(timezones=_ZONES | st.none()).map(
    lambda time: time.isoformat(timespec="seconds")
)
_UTC_TIMES = st.datetimes().map(lambda time: time.isoformat(timespec="seconds") + "Z")


def _is_date(field: Json, value: Any) -> bool:
    rules = field["validation"]
    is_date = re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", value) and date.fromisoformat(value)
    return bool(is_date) and rules.get("min_date", "") <= value <= rules.get("max_date", "9")


def _is_time(field: Json, value: Any) -> bool:
    rules = field["validation"]
    moment = datetime.strptime(value, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
    first, last = rules.get("min_date", "0001-01-01"), rules.get("max_date", "9999-12-31")
    # A date as the last one has all of its times.
    return first <= value and (value <= last or value[:10] == last) and moment.year >= 1


CASES = Cases(
    good=[
        ("date", {}, [("2026-01-31", "2026-01-31"), ("0001-01-01", "0001-01-01")]),
        (
            "date",
            {"min_date": "2026-01-31", "max_date": "2026-02-01"},
            [("2026-01-31", "2026-01-31"), ("2026-02-01", "2026-02-01")],
        ),
        (
            "datetime",
            {},
            [
                ("2026-01-31T09:30:00Z", "2026-01-31T09:30:00Z"),
                ("2026-01-31T09:30", "2026-01-31T09:30:00Z"),
                ("2026-01-31 09:30:59", "2026-01-31T09:30:59Z"),
                ("2026-01-31T09:30:00.123456789Z", "2026-01-31T09:30:00Z"),
                ("2026-01-31T23:30:00-02:00", "2026-02-01T01:30:00Z"),
                ("2026-01-31T09:30:00+0530", "2026-01-31T04:00:00Z"),
            ],
        ),
        (
            "datetime",
            {"min_date": "2026-01-31T09:00:00+01:00", "max_date": "2026-01-31"},
            [
                ("2026-01-31T08:00:00Z", "2026-01-31T08:00:00Z"),
                ("2026-01-31T23:59:59.9Z", "2026-01-31T23:59:59Z"),
            ],
        ),
        (
            "datetime",
            {"min_date": "2026-01-31", "max_date": "2026-01-31T12:00"},
            [
                ("2026-01-31T00:00:00Z", "2026-01-31T00:00:00Z"),
                ("2026-01-31T12:00", "2026-01-31T12:00:00Z"),
            ],
        ),
    ],
    bad=[
        (
            "date",
            {},
            {
                "a date": [
                    "2026-02-30",
                    "2026-1-1",
                    "20260131",
                    "2026-W05-6",
                    "31.01.2026",
                    "0000-01-01",
                    "10000-01-01",
                    "2026-01-31T00:00:00Z",
                    " 2026-01-31",
                    "2026-01-31\n",
                    "\u0662\u0660\u0662\u0666-\u0660\u0661-\u0663\u0661",
                    "tomorrow",
                ]
            },
        ),
        (
            "date",
            {"min_date": "2026-01-31", "max_date": "2026-02-01"},
            {"before 2026-01-31": ["2026-01-30"], "after 2026-02-01": ["2026-02-02"]},
        ),
        (
            "datetime",
            {},
            {
                "a time": [
                    "2026-01-31",
                    "2026-02-30T09:30:00Z",
                    "2026-01-31T24:00:00Z",
                    "2026-01-31T09:60:00Z",
                    "2026-01-31T09:30:00 CET",
                    "2026-01-31T09:30:00+25:00",
                    "2026-01-31x09:30:00Z",
                    "0001-01-01T00:00:00+14:00",
                    "9999-12-31T23:59:59-14:00",
                    "09:30",
                    "2026-W05-6T09:30",
                    "2026-01-31T09:30:00Z\n",
                ]
            },
        ),
        (
            "datetime",
            {"min_date": "2026-01-31T09:00:00+01:00", "max_date": "2026-01-31"},
            {
                "before 2026-01-31T09:00:00+01:00": ["2026-01-31T07:59:59Z"],
                "after 2026-01-31": ["2026-02-01T00:00:00Z", "2026-01-31T23:30:00-01:00"],
            },
        ),
    ],
    messages=[
        (
            "date",
            {},
            {
                "2026-01-31": "2026-01-31",
                "on 2026-01-31.": "2026-01-31",
                "31 January 2026": "2026-01-31",
                "Saturday, 31st of January 2026": "2026-01-31",
                "January 31, 2026": "2026-01-31",
                "Jan. 31st 2026": "2026-01-31",
                "1 may 2026": "2026-05-01",
                "5 Sept 2026": "2026-09-05",
                "2 guests 2026 and 5 May 2026": "2026-05-05",
                "2026-01-31, that is 31 January 2026": "2026-01-31",
                "tomorrow": REFUSED,
                "01/02/2026": REFUSED,
                "30 February 2026": REFUSED,
                "31 January": REFUSED,
                "31 January 26": REFUSED,
                "12026-01-31": REFUSED,
                "2026-01-311": REFUSED,
                "5 May 2026 or 6 May 2026": REFUSED,
                "not 2026-01-31 but 2026-02-01": REFUSED,
                "31 Mayor 2026": REFUSED,
            },
        ),
        ("date", {"min_date": "2026-02-01"}, {"31 January 2026": REFUSED}),
        (
            "datetime",
            {},
            {
                "2026-01-31T09:30:00Z": "2026-01-31T09:30:00Z",
                "2026-01-31 09:30": "2026-01-31T09:30:00Z",
                "31 January 2026 at 9:30": "2026-01-31T09:30:00Z",
                "31 January 2026, 9.30 am": "2026-01-31T09:30:00Z",
                "9pm on January 31, 2026": "2026-01-31T21:00:00Z",
                "2026-01-31 09:30 pm": "2026-01-31T21:30:00Z",
                "2026-01-31 9:30 p.m.": "2026-01-31T21:30:00Z",
                "2026-01-31 12 am": "2026-01-31T00:00:00Z",
                "2026-01-31 12:15 PM, 2 guests": "2026-01-31T12:15:00Z",
                "2026-01-31 09:30:15 UTC": "2026-01-31T09:30:15Z",
                "2026-01-31 09:30 +02:00": "2026-01-31T07:30:00Z",
                "2026-01-31 09:30 UTC+02:00": "2026-01-31T07:30:00Z",
                "2026-01-31T23:30:00-02:00": "2026-02-01T01:30:00Z",
                "2026-01-31": REFUSED,
                "2026-01-31 at 9": REFUSED,
                "2026-01-31 24:00": REFUSED,
                "2026-01-31 13 pm": REFUSED,
                "2026-01-31 30 am": REFUSED,
                "2026-01-31 9:30 CET": REFUSED,
                "2026-01-31 9:30 est": REFUSED,
                "2026-01-31 9:30 local time": REFUSED,
                "2026-01-31 09:30-10:30": REFUSED,
                "2026-01-31 09:30 or 10:30": REFUSED,
                "0001-01-01T00:00:00+14:00": REFUSED,
                "tomorrow 9:30": REFUSED,
                "09:30": REFUSED,
            },
        ),
    ],
    wrong_rules=[
        ("date", {"min": "2026-01-31"}, "min", "is not a known field"),
        ("date", {"min_date": "31.01.2026"}, "min_date", "a date like"),
        ("date", {"max_date": "2026-02-30"}, "max_date", "a date like"),
        ("date", {"max_date": "2026-01-31T00:00:00Z"}, "max_date", "a date like"),
        ("date", {"min_date": 2026}, "min_date", "str"),
        ("date", {"min_date": "today"}, "min_date", "a date like"),
        (
            "date",
            {"min_date": "2026-02-01", "max_date": "2026-01-31"},
            "min_date",
            "after max_date",
        ),
        ("datetime", {"min_date": "x"}, "min_date", "a time like"),
        ("datetime", {"max_date": "2026-02-30"}, "max_date", "a date like"),
        (
            "datetime",
            {"min_date": "2026-01-31T00:00:00-01:00", "max_date": "2026-01-31T00:30:00Z"},
            "min_date",
            "after max_date",
        ),
    ],
    values={
        "date": _DATES,
        "datetime": _TIMES,
    },
    rules={
        "date": generate_range(_DATES, "min_date", "max_date"),
        "datetime": generate_range(_DATES, "min_date", "max_date")
        | generate_range(_UTC_TIMES, "min_date", "max_date"),
    },
    operands={
        "date": _DATES,
        "datetime": _UTC_TIMES,
    },
    is_stored={
        "date": _is_date,
        "datetime": _is_time,
    },
)
