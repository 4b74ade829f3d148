"""Strict decoding of request bodies."""

from collections.abc import Collection
from functools import lru_cache
from types import UnionType
from typing import Any, Union, get_args, get_origin

from litestar import Request
from litestar.datastructures import FormMultiDict
from litestar.types import Empty

from app.http import multipart
from app.http.body_budget import BodyUse
from app.http.route_options import request_options
from app.kit.errors import Invalid, PayloadTooLarge
from app.kit.unknown_fields import describe_unknown, field_types, is_struct
from app.kit.validation import decode

# The limit of request bodies; upload handlers set their own.
MAX_BYTES = 1024 * 1024
# The values of a larger body, which has long strings: each value takes memory of its own.
_MAX_VALUES = 200_000


def announce_use(request: Request[Any, Any, Any]) -> None:
    """Says where the body goes, before it is read."""
    use: BodyUse = request.scope["state"]["body_use"]
    options = request_options(request)
    if options.streamed_file is not None:
        use.stream()
    elif options.upload and multipart.find_boundary(request) is not None:
        use.spool()


@lru_cache(maxsize=1024)
def _list_shown_fields(kind: Any) -> frozenset[str]:
    """The fields of the response, or of the one thing that it shows as its data."""
    if get_origin(kind) in {Union, UnionType}:
        return frozenset().union(*map(_list_shown_fields, get_args(kind)))
    if not is_struct(kind):
        return frozenset()
    types = field_types(kind)
    return frozenset(types) | _list_shown_fields(types.get("data"))


class StrictRequest(Request[Any, Any, Any]):
    """Decodes a JSON body into the handler's struct, without coercing values of a wrong type. Of
    the fields that the struct does not have, those of the response are ignored: many clients send
    back what they have read, with a change.
    """

    async def json(self) -> Any:  # the type of the handler's body
        field = self.route_handler.parsed_data_field
        body = await self.body()
        if len(body) > MAX_BYTES and sum(map(body.count, (b",", b"[", b"{"))) > _MAX_VALUES:
            raise PayloadTooLarge("A request body of more than 1 MiB may have fewer values")
        return decode(
            body,
            field.annotation if field else Any,
            is_open=request_options(self).open_body,
            also_known=_list_shown_fields(self.route_handler.parsed_return_field.annotation),
        )

    async def form(self) -> FormMultiDict:
        """Parses a multipart body by `app.http.multipart`; the rest is Litestar's."""
        state, boundary = self._connection_state, multipart.find_boundary(self)
        if boundary is not None and state.form is Empty:
            digest = self.scope["state"].get("body_digest")
            state.form = await multipart.parse_form(self.stream(), boundary, digest)
            self._check_names(state.form)
        return await super().form()

    def _check_names(self, form: Collection[str]) -> None:
        field = self.route_handler.parsed_data_field
        is_open = request_options(self).open_body
        if field is not None and not is_open and is_struct(field.annotation):
            types = field_types(field.annotation)
            Invalid.check(describe_unknown(name, types, "") for name in form if name not in types)
