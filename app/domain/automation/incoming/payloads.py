"""Received payloads: decodes them, lists them."""

from typing import Any
from urllib.parse import parse_qsl

import msgspec

from app.kit import paging
from app.kit.errors import Invalid
from app.kit.paging import Page, Paged
from app.kit.texts import is_deeper, without_nul
from db.fast import Row
from db.session import Tx

from . import queries
from .errors import PayloadNotFound
from .queries import LISTED_BYTES
from .schemas import PayloadView
from .service import require

_FORM_TYPE = "application/x-www-form-urlencoded"
_MAX_DEPTH = 64


async def list_page(tx: Tx, webhook_id: str, page: Page) -> Paged[PayloadView]:
    rows, total = await queries.list_payloads(tx, webhook_id, page)
    if not rows:
        await require(tx, webhook_id)
    return paging.paged([_build_view(row) for row in rows], total, page)


async def get(tx: Tx, webhook_id: str, payload_id: str) -> PayloadView:
    row = await queries.find_payload(tx, webhook_id, payload_id)
    if row is None:
        await require(tx, webhook_id)
        raise PayloadNotFound(f"This webhook received no payload {payload_id[:64]}")
    return _build_view(row)


def _build_view(row: Row) -> PayloadView:
    body, media_type = row["body"], row["headers"].get("content-type", "")
    payload = decode_body(body, media_type) if body is not None else None
    return queries.build_payload(row, payload=payload)


def decode_body(body: bytes, media_type: str) -> Any:
    """Returns the JSON value or the fields of the form; long JSON stays undecoded as `Raw`.

    Raises Invalid.
    """
    if media_type.partition(";")[0].strip().lower() == _FORM_TYPE:
        try:
            fields = parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=1000)
            return without_nul(dict(fields))
        except (ValueError, UnicodeDecodeError):
            raise Invalid.field("body", "is not a valid form") from None
    try:
        if len(body) > LISTED_BYTES:
            # Validated, but not decoded: decoding can take a second.
            body.decode()
            return msgspec.json.decode(body, type=msgspec.Raw)
        content = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise Invalid.field("body", "is not valid JSON") from None
    if is_deeper(content, _MAX_DEPTH):
        raise Invalid.field("body", "is nested too deeply")
    return without_nul(content) if b"\\u0000" in body else content
