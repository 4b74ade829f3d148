"""Runs many operations on resources of one kind in one request; each succeeds or fails by itself.

An area has a table of the functions that its operations call, and a route with its own body and
answer: a `Batch` and a list of `OperationResult`.
"""

from collections.abc import Awaitable, Callable
from typing import Annotated, Any, Generic, Literal, TypeVar

import msgspec
from msgspec import Meta

from app.kit import etags, validation
from app.kit.error_mapping import HTTP_SERVER_ERROR, to_api_error
from app.kit.errors import ApiError, Invalid
from app.kit.unknown_fields import field_types
from app.security.principal import Principal
from db.session import Tx

View = TypeVar("View", bound=msgspec.Struct)
New = TypeVar("New", bound=msgspec.Struct)
Change = TypeVar("Change", bound=msgspec.Struct)

Action = Literal["create", "update", "delete"]
_SUCCESS_STATUS = {"create": 201, "update": 200, "delete": 204}


class Operation(msgspec.Struct, kw_only=True):
    """`if_match` is what the header If-Match of a PUT would be."""

    action: Action
    id: str | None = None
    data: dict[str, Any] | None = None
    if_match: Annotated[str, Meta(max_length=10_000)] | None = None


class Batch(msgspec.Struct):
    operations: Annotated[list[Operation], Meta(min_length=1, max_length=100)]


class OperationError(msgspec.Struct, omit_defaults=True):
    code: str
    message: str
    details: dict[str, Any] | None = None


class OperationResult(msgspec.Struct, Generic[View], omit_defaults=True):
    """`status` is the HTTP status of the same request on its own."""

    index: int
    status: int
    data: View | None = None
    error: OperationError | None = None


def build_example(view: dict[str, Any], code: str, message: str) -> dict[str, Any]:
    """Returns the example of an answer: a created resource, an error, and a deletion."""
    return {
        "results": [
            {"index": 0, "status": 201, "data": view},
            {"index": 1, "status": 404, "error": {"code": code, "message": message}},
            {"index": 2, "status": 204},
        ]
    }


class Functions(msgspec.Struct, Generic[View, New, Change], frozen=True, kw_only=True):
    """What the operations of one area call. `noun` names a resource in messages, with its article;
    `permissions` has the permission of each action.
    """

    noun: str
    permissions: dict[Action, str]
    view: type[View]
    new: type[New]
    change: type[Change]
    create: Callable[[New], Awaitable[View]]
    # Returns the resource, which no other transaction changes then.
    lock: Callable[[str], Awaitable[View]]
    update: Callable[[str, Change], Awaitable[View]]
    delete: Callable[[str], Awaitable[None]]


async def run(
    tx: Tx,
    principal: Principal,
    functions: Functions[View, New, Change],
    operations: list[Operation],
) -> list[OperationResult[View]]:
    return [
        await _run_in_savepoint(tx, principal, functions, index, operation)
        for index, operation in enumerate(operations)
    ]


async def _run_in_savepoint(
    tx: Tx,
    principal: Principal,
    functions: Functions[View, New, Change],
    index: int,
    operation: Operation,
) -> OperationResult[View]:
    """Runs one operation in a savepoint, which is rolled back when the operation fails."""
    session, callback_count = await tx.session(), len(tx.after_commit)
    change_count = len(tx.record_changes.items)
    try:
        async with session.begin_nested():
            view = await _run_operation(principal, functions, operation)
    except Exception as error:
        api_error = to_api_error(error)
        if api_error.status >= HTTP_SERVER_ERROR:
            raise
        del tx.after_commit[callback_count:]
        del tx.record_changes.items[change_count:]
        return _build_error_result(index, api_error)
    return OperationResult(index, _SUCCESS_STATUS[operation.action], data=view)


async def _run_operation(
    principal: Principal, functions: Functions[View, New, Change], operation: Operation
) -> View | None:
    action, goal = operation.action, f"{operation.action} {functions.noun}"
    if action != "create" and not operation.id:
        raise Invalid.field("id", f"is required to {goal}")
    principal.require(functions.permissions[action])
    resource_id = operation.id or ""
    if action == "delete":
        await functions.delete(resource_id)
        return None
    if operation.data is None:
        raise Invalid.field("data", f"is required to {goal}")
    raw = msgspec.json.encode(operation.data)
    kind = functions.new if action == "create" else functions.change
    data: Any = validation.decode(raw, kind, also_known=field_types(functions.view))
    if action == "create":
        return await functions.create(data)
    if operation.if_match is not None:
        await _check_tag(functions, resource_id, operation.if_match)
    return await functions.update(resource_id, data)


async def _check_tag(
    functions: Functions[View, New, Change], resource_id: str, if_match: str
) -> None:
    """Raises PreconditionFailed, like a PUT with this If-Match."""
    tags = etags.read_tags("if_match", if_match)
    if not tags.is_any:
        tag = etags.build_tag(functions.view, [functions.change])
        etags.require_match(tag, await functions.lock(resource_id), tags)


def _build_error_result(index: int, error: ApiError) -> OperationResult[Any]:
    body = OperationError(error.code, error.message, error.details)
    return OperationResult(index, error.status, error=body)
