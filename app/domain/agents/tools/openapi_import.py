"""Creates tools of type rest_api from OpenAPI documents."""

import asyncio
from pathlib import Path
from typing import Any, Final
from urllib.parse import urljoin

import msgspec

from app.context import RequestContext
from app.kit import logs
from app.kit.errors import Invalid
from app.net.egress import BlockedAddress, EgressError
from app.sandbox import child_process
from app.sandbox.child_process import Limits, ProcessFailed, ScriptRefused

from . import service
from .openapi_schemas import (
    MAX_DOCUMENT_BYTES,
    ApiOperation,
    ApiSecurity,
    ImportedApi,
    ImportOpenApi,
)
from .schemas import CreateTool

log = logs.get("tools")

_SCRIPT: Final = Path(__file__).parent / "openapi" / "read_child.py"
_LIMITS: Final = Limits(
    seconds=30.0,
    cpu_seconds=20,
    memory_mib=1024,
    output_bytes=16 * 1024 * 1024,
    open_files=64,
    niceness=5,
)
_FETCH_SECONDS: Final = 15.0
_REDIRECTS: Final = 3
_OK: Final = 200
_MAX_DESCRIPTION: Final = 2000


class _Read(msgspec.Struct):
    """What the script answers."""

    title: str
    version: str
    description: str
    base_url: str | None
    security: list[ApiSecurity]
    total: int
    operations: list[ApiOperation]
    input_schema: dict[str, Any] | None


async def import_openapi(context: RequestContext, data: ImportOpenApi) -> ImportedApi:
    """Reads the document before the transaction takes a connection."""
    if (data.document is None) == (data.url is None):
        raise Invalid.field("document", "exactly one of document and url is needed")
    text = await _fetch(context, data.url) if data.url is not None else None
    api = await _read(data, text)
    base_url = data.base_url or api.base_url
    if base_url is not None and data.url is not None:
        base_url = urljoin(data.url, base_url)
    imported = ImportedApi(
        title=api.title,
        version=api.version,
        base_url=base_url,
        security=api.security,
        total=api.total,
        operations=api.operations,
    )
    if data.operations is not None and not data.dry_run:
        imported.tool = await service.create(context, _build_tool(data, api, base_url))
    return imported


async def _fetch(context: RequestContext, url: str) -> str:
    services = context.services
    problem = context.guard.problem_with(url)
    if problem is not None:
        raise Invalid.field("url", problem)
    try:
        async with services.outbound_limit.hold(context.principal.home):
            answer = await services.egress.request(
                "GET",
                url,
                headers={"Accept": "application/json, application/yaml, text/yaml, */*;q=0.5"},
                timeout_seconds=_FETCH_SECONDS,
                max_bytes=MAX_DOCUMENT_BYTES,
                redirects=_REDIRECTS,
            )
    except BlockedAddress as error:
        raise Invalid.field("url", str(error)[:300]) from None
    except EgressError as error:
        raise Invalid.field("url", f"could not be fetched: {str(error)[:300]}") from None
    if answer.status != _OK:
        raise Invalid.field("url", f"the server answered with the status {answer.status}")
    return answer.body.decode("utf-8", "replace")


async def _read(data: ImportOpenApi, text: str | None) -> _Read:
    document: Any = None
    if isinstance(data.document, str):
        text = data.document
    else:
        document = data.document
    field = "document" if data.url is None else "url"
    request = {"text": text, "document": document, "wanted": data.operations}
    try:
        content = await read_document(request)
    except RecursionError:
        raise Invalid.field(field, "is nested too deeply") from None
    except ScriptRefused as error:
        raise Invalid.field(field, f"The document {error}") from None
    except ProcessFailed as error:
        log.info("an OpenAPI document could not be read", code=error.exit_code)
        raise Invalid.field(field, "takes too much time or memory to read") from None
    return await asyncio.to_thread(msgspec.json.decode, content, type=_Read)


async def read_document(request: dict[str, Any]) -> memoryview:
    """Returns what the script answers; see `read_child.py`."""
    content = await asyncio.to_thread(msgspec.json.encode, request)
    response = await child_process.request(_SCRIPT, content, limits=_LIMITS)
    return response.body


def _build_tool(data: ImportOpenApi, api: _Read, base_url: str | None) -> CreateTool:
    Invalid.check(
        (f"operations.{item.id}", f"cannot be imported: {item.reason}")
        for item in api.operations
        if not item.can_import
    )
    if base_url is None or base_url.startswith("/") or "{" in base_url:
        raise Invalid.field("base_url", "is needed: the document names no server that can be used")
    endpoints = {item.id: {"method": item.method, "path": item.path} for item in api.operations}
    auth_type, auth_config = _build_auth(data, api)
    return CreateTool(
        name=data.name or api.title or "API",
        description=api.description[:_MAX_DESCRIPTION],
        category=data.category,
        tool_type="rest_api",
        config={"base_url": base_url, "endpoints": endpoints},
        auth_type=auth_type,
        auth_config=auth_config,
        input_schema=api.input_schema,
    )


def _build_auth(data: ImportOpenApi, api: _Read) -> tuple[Any, dict[str, Any] | None]:
    """Without a credential the tool authenticates nothing: the answer says what the API wants."""
    if data.credential_id is None:
        return "none", None
    names = {name for item in api.operations for name in item.security}
    fitting = [
        scheme
        for scheme in api.security
        if scheme.auth_type is not None and (scheme.name in names or not names)
    ]
    if not fitting:
        problem = "the document has no way to authenticate these operations that a tool can use"
        raise Invalid.field("credential_id", problem)
    scheme = fitting[0]
    auth: dict[str, Any] = {"credential_id": data.credential_id}
    if scheme.auth_type == "api_key":
        auth["api_key_header"] = scheme.api_key_header
        auth["api_key_location"] = scheme.api_key_location
    return scheme.auth_type, auth
