"""What came in, as people see it."""

from typing import Any
from urllib.parse import parse_qsl

import msgspec

from app.domain.incoming import queries
from app.domain.incoming.errors import PayloadNotFound
from app.domain.incoming.queries import LISTED_BYTES
from app.domain.incoming.schemas import PayloadView
from app.domain.incoming.service import find
from app.kit import paging
from app.kit.errors import Invalid
from app.kit.paging import Page, Paged
from app.kit.texts import is_deeper, without_nul
from db.fast import Row
from db.session import Tx

_FORM = "application/x-www-form-urlencoded"
_DEEPEST = 64


async def list_page(tx: Tx, webhook_id: str, page: Page) -> Paged[PayloadView]:
    webhook = await find(tx, webhook_id)
    rows, total = await queries.list_payloads(tx, webhook.tenant_id, webhook.id, page)
    return paging.paged([_view(row) for row in rows], total, page)


async def get(tx: Tx, webhook_id: str, payload_id: str) -> PayloadView:
    webhook = await find(tx, webhook_id)
    row = await queries.find_payload(tx, webhook.tenant_id, webhook.id, payload_id)
    if row is None:
        raise PayloadNotFound(f"This webhook received no payload {payload_id[:64]}")
    return _view(row)


def _view(row: Row) -> PayloadView:
    kept: dict[str, str] = msgspec.json.decode(row["headers"])
    body = row["body"]
    return PayloadView(
        row["id"],
        read(body, kept.get("content-type", "")) if body is not None else None,
        row["size_bytes"],
        kept,
        row["source_ip"],
        row["workflow_execution_id"],
        row["replay_of"],
        row["created_at"],
    )


def read(body: bytes, media_type: str) -> Any:
    """JSON, as it stands if it is long; or a form, as some have it, whose fields are texts."""
    if media_type.partition(";")[0].strip().lower() == _FORM:
        try:
            fields = parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=1000)
            return without_nul(dict(fields))
        except (ValueError, UnicodeDecodeError):
            raise Invalid.field("body", "is not a valid form") from None
    try:
        if len(body) > LISTED_BYTES:
            # Checked, not taken apart: that could take a second.
            body.decode()
            return msgspec.json.decode(body, type=msgspec.Raw)
        said = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise Invalid.field("body", "is not valid JSON") from None
    if is_deeper(said, _DEEPEST):
        raise Invalid.field("body", "is nested too deeply")
    return without_nul(said) if b"\\u0000" in body else said
