"""Strict decoding of JSON request bodies."""

from typing import Any

from litestar import Request

from app.kit.validation import decode

# The limit of request bodies; upload handlers set their own.
MAX_BYTES = 1024 * 1024


class StrictRequest(Request[Any, Any, Any]):
    """Decodes a JSON body into the handler's struct, without coercing values of a wrong type."""

    async def json(self) -> Any:  # the type of the handler's body
        field = self.route_handler.parsed_data_field
        return decode(await self.body(), field.annotation if field else Any)
