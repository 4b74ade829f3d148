"""Reading request bodies strictly."""

from typing import Any

from litestar import Request

from app.kit.validation import decode

# What a handler takes unless it is made for uploads and says otherwise.
MAX_BYTES = 1024 * 1024


class StrictRequest(Request[Any, Any, Any]):
    """Decodes a JSON body right into the handler's struct: no coercion of wrong types."""

    async def json(self) -> Any:  # the handler's own body type
        field = self.route_handler.parsed_data_field
        return decode(await self.body(), field.annotation if field else Any)
