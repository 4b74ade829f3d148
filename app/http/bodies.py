"""Strict decoding of request bodies."""

from typing import Any

from litestar import Request
from litestar.datastructures import FormMultiDict
from litestar.types import Empty

from app.http import multipart
from app.http.body_budget import BodyUse
from app.http.route_options import request_options
from app.kit.validation import decode

# The limit of request bodies; upload handlers set their own.
MAX_BYTES = 1024 * 1024


def announce_use(request: Request[Any, Any, Any]) -> None:
    """Says where the body goes, before it is read."""
    use: BodyUse = request.scope["state"]["body_use"]
    options = request_options(request)
    if options.streamed_file is not None:
        use.stream()
    elif options.upload and multipart.find_boundary(request) is not None:
        use.spool()


class StrictRequest(Request[Any, Any, Any]):
    """Decodes a JSON body into the handler's struct, without coercing values of a wrong type."""

    async def json(self) -> Any:  # the type of the handler's body
        field = self.route_handler.parsed_data_field
        return decode(await self.body(), field.annotation if field else Any)

    async def form(self) -> FormMultiDict:
        """Parses a multipart body by `app.http.multipart`; the rest is Litestar's."""
        state, boundary = self._connection_state, multipart.find_boundary(self)
        if boundary is not None and state.form is Empty:
            digest = self.scope["state"].get("body_digest")
            state.form = await multipart.parse_form(self.stream(), boundary, digest)
        return await super().form()
