"""Decodes one picture and draws it anew, as a process of its own that may be killed.

Run by path with the interpreter alone; it imports nothing of ours. Reads the file from standard
input; writes one line, the media type or `!` and what is wrong, and then the new picture.
"""

import io
import os
import resource
import sys
import warnings
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from PIL import Image

_MIB = 1024 * 1024
_MEMORY = 768 * _MIB
_CPU_SECONDS = 3
_MAX_PIXELS = 20_000_000
# A progressive JPEG has about ten scans; thousands of tiny ones are there to burn time.
_MAX_SCANS = 100
_ORIENTATION = 274
_TYPES = {"PNG": "image/png", "JPEG": "image/jpeg", "WEBP": "image/webp"}


class Refused(Exception):
    pass


def limit() -> None:
    os.nice(10)
    resource.setrlimit(resource.RLIMIT_CPU, (_CPU_SECONDS, _CPU_SECONDS))
    if sys.platform != "darwin":
        # macOS refuses any limit of address space.
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_NOFILE, (32, 32))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def redraw(content: bytes, max_side: int) -> tuple[str, bytes]:
    from PIL import Image, UnidentifiedImageError  # noqa: PLC0415  # after the limits

    warnings.simplefilter("ignore")
    Image.MAX_IMAGE_PIXELS = None
    try:
        image = Image.open(io.BytesIO(content), formats=list(_TYPES))
    except UnidentifiedImageError:
        raise Refused("is not a PNG, JPEG or WebP picture") from None
    if image.width * image.height > _MAX_PIXELS:
        raise Refused(f"has more than {_MAX_PIXELS // 1_000_000} megapixels")
    # Phones put several pictures into one JPEG; the first is the one that people see.
    kind = "JPEG" if image.format == "MPO" else str(image.format)
    if kind == "JPEG" and content.count(b"\xff\xda") > _MAX_SCANS:
        raise Refused("has too many scans")
    image.draft("RGB", (max_side, max_side))
    drawn = _eight_bits(image)
    drawn.thumbnail((max_side, max_side))
    drawn = drawn.convert("RGB" if kind == "JPEG" else "RGBA")
    for turn in _turns(image):
        drawn = drawn.transpose(turn)
    drawn.info.clear()
    out = io.BytesIO()
    drawn.save(out, kind)
    return _TYPES[kind], out.getvalue()


def _eight_bits(image: "Image.Image") -> "Image.Image":
    """Sixteen bits of grey become the usual eight."""
    if not image.mode.startswith("I"):
        return image
    return image.convert("I").point(lambda value: value * (1 / 256)).convert("L")


def _turns(image: "Image.Image") -> "list[Image.Transpose]":
    """How to put the picture upright; a camera notes it beside the pixels."""
    from PIL.Image import Transpose  # noqa: PLC0415

    mirror, over = Transpose.FLIP_LEFT_RIGHT, Transpose.ROTATE_180
    left, right = Transpose.ROTATE_90, Transpose.ROTATE_270
    noted = {
        2: [mirror], 3: [over], 4: [mirror, over], 5: [mirror, left],
        6: [right], 7: [mirror, right], 8: [left],
    }  # fmt: skip
    try:
        return noted.get(image.getexif().get(_ORIENTATION, 1), [])
    except Exception:  # noqa: BLE001  # the notes are damaged; the pixels need not be
        return []


def answer(content: bytes, max_side: int) -> bytes:
    try:
        media_type, picture = redraw(content, max_side)
    except Refused as problem:
        media_type, picture = f"!{problem}", b""
    except MemoryError:
        media_type, picture = "!takes too much memory to read", b""
    except Exception:  # noqa: BLE001  # whatever a decoder trips over, the file is at fault
        media_type, picture = "!is a damaged picture", b""
    return media_type.encode() + b"\n" + picture


def main() -> None:
    limit()
    sys.stdout.buffer.write(answer(sys.stdin.buffer.read(), int(sys.argv[1])))


if __name__ == "__main__":
    main()
