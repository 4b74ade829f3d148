"""Pictures from outside: what is kept is a new picture, made from the pixels of the one sent.

Nothing else of the file survives: no metadata, no trailing bytes, no second format hidden inside.
"""

import asyncio
import io
import warnings
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import msgspec
from PIL import Image, ImageOps, UnidentifiedImageError

TYPES: Final = {"PNG": "image/png", "JPEG": "image/jpeg", "WEBP": "image/webp"}
_MAX_PIXELS = 25_000_000
# Pictures are decoded a few at a time, so that they never take all of a machine.
_threads = ThreadPoolExecutor(max_workers=2, thread_name_prefix="images")


class NotAPicture(ValueError):
    """The message says why, for the one who sent it."""


class Picture(msgspec.Struct, frozen=True):
    content: bytes
    media_type: str


async def redrawn(content: bytes, max_side: int) -> Picture:
    """A PNG, JPEG or WebP, told by its content, at most `max_side` pixels wide and high."""
    return await asyncio.get_running_loop().run_in_executor(_threads, _redrawn, content, max_side)


def _redrawn(content: bytes, max_side: int) -> Picture:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with Image.open(io.BytesIO(content), formats=list(TYPES)) as image:
                return _draw(image, max_side)
    except (UnidentifiedImageError, Image.DecompressionBombError):
        raise NotAPicture("is not a PNG, JPEG or WebP picture") from None
    except (OSError, ValueError, SyntaxError, EOFError, IndexError, OverflowError) as error:
        if isinstance(error, NotAPicture):
            raise
        raise NotAPicture("is a damaged picture") from None


def _draw(image: Image.Image, max_side: int) -> Picture:
    if image.width * image.height > _MAX_PIXELS:
        raise NotAPicture(f"has more than {_MAX_PIXELS // 1_000_000} megapixels")
    kind = image.format or "PNG"
    # A JPEG can be decoded smaller right away.
    image.draft("RGB", (max_side, max_side))
    upright = ImageOps.exif_transpose(image)
    upright.thumbnail((max_side, max_side))
    drawn = upright.convert("RGB" if kind == "JPEG" else "RGBA")
    out = io.BytesIO()
    drawn.save(out, kind)
    return Picture(out.getvalue(), TYPES[kind])
