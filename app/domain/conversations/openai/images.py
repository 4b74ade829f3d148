"""Images in messages: data URLs are checked, others are fetched, so that a model gets the bytes."""

import asyncio
import base64
import binascii
from collections.abc import Callable
from typing import Final

import msgspec

from app.domain.agents.llm.api import Image, Message
from app.kit.errors import Invalid
from app.net.egress import EgressError, ResponseTooLarge
from app.services import Services

MAX_IMAGES: Final = 16
MAX_MB: Final = 5
_MAX_TOTAL_MB = 12
_MEGABYTE = 1024 * 1024
_SECONDS = 15.0
_AT_A_TIME = 3
_REDIRECTS = 3
_OK = 200
# The first bytes of the formats that models take.
_FORMATS: Final = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)
_TOO_LARGE = f"must have at most {MAX_MB} MB"
_NOT_AN_IMAGE = "must be a PNG, JPEG, GIF or WebP image"


class ImageLoader:
    """Loads the images of one request. `on_fetch` is called before the first one is fetched."""

    def __init__(self, services: Services, on_fetch: Callable[[], None]) -> None:
        self._services = services
        self._on_fetch = on_fetch
        # Few at a time: each may have the largest size.
        self._places = asyncio.Semaphore(_AT_A_TIME)
        self._remaining = _MAX_TOTAL_MB * _MEGABYTE
        self._urls: dict[str, str] = {}

    async def resolve(
        self, messages: list[Message], tenant_id: str, *, may_fetch: bool
    ) -> list[Message]:
        """Replaces the addresses of images by data URLs."""
        images = [part for item in messages for part in item.parts if isinstance(part, Image)]
        if len(images) > MAX_IMAGES:
            raise Invalid.field("image_url", f"may have at most {MAX_IMAGES} images")
        addresses = {image.url for image in images if not image.url.startswith("data:")}
        if addresses and not may_fetch:
            raise Invalid.field("image_url", "must be a data URL for callers who are not signed in")
        for url in dict.fromkeys(image.url for image in images if image.url not in addresses):
            self._add(url, await asyncio.to_thread(_decode_data_url, url))
        if addresses:
            self._on_fetch()
            async with self._services.outbound_limit.hold(tenant_id):
                await self._fetch_all(addresses)
        return [_with_data(item, self._urls) if item.parts else item for item in messages]

    async def _fetch_all(self, addresses: set[str]) -> None:
        """The first that fails ends the others."""
        try:
            async with asyncio.TaskGroup() as group:
                for url in addresses:
                    group.create_task(self._fetch(url))
        except ExceptionGroup as failed:
            raise failed.exceptions[0] from failed

    async def _fetch(self, url: str) -> None:
        async with self._places:
            content = await _request(self._services, url)
            self._add(url, await asyncio.to_thread(_encode, content))

    def _add(self, url: str, data_url: str) -> None:
        self._remaining -= len(data_url) * 3 // 4
        if self._remaining < 0:
            raise Invalid.field("image_url", f"may have at most {_MAX_TOTAL_MB} MB of images")
        self._urls[url] = data_url


def _with_data(message: Message, resolved: dict[str, str]) -> Message:
    parts = tuple(
        Image(resolved[part.url], part.detail) if isinstance(part, Image) else part
        for part in message.parts
    )
    return msgspec.structs.replace(message, parts=parts)


def _decode_data_url(url: str) -> str:
    try:
        content = base64.b64decode(url.partition(";base64,")[2], validate=True)
    except (binascii.Error, ValueError):
        raise Invalid.field("image_url", "must be a data URL in base64") from None
    return _encode(content)


async def _request(services: Services, url: str) -> bytes:
    try:
        answer = await services.egress.request(
            "GET",
            url,
            timeout_seconds=_SECONDS,
            max_bytes=MAX_MB * _MEGABYTE,
            redirects=_REDIRECTS,
        )
    except ResponseTooLarge:
        raise Invalid.field("image_url", _TOO_LARGE) from None
    except EgressError as error:
        raise Invalid.field("image_url", f"could not be fetched: {error}") from error
    if answer.status != _OK:
        raise Invalid.field("image_url", f"could not be fetched: the server said {answer.status}")
    return answer.body


def _encode(content: bytes) -> str:
    if len(content) > MAX_MB * _MEGABYTE:
        raise Invalid.field("image_url", _TOO_LARGE)
    media_type = next((kind for start, kind in _FORMATS if content.startswith(start)), None)
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        media_type = "image/webp"
    if media_type is None:
        raise Invalid.field("image_url", _NOT_AN_IMAGE)
    return f"data:{media_type};base64,{base64.b64encode(content).decode()}"
