"""Script that decodes one picture and draws it again; `images.py` runs it with limits.

It imports nothing of Parley. It reads the file from standard input and the longest side from its
first argument. It writes one line, the media type or `!` and an error, and then the new picture.
"""

import io
import sys
import warnings
from importlib import import_module

from PIL import Image, UnidentifiedImageError

_MAX_PIXELS = 20_000_000
# A progressive JPEG has about ten scans; a file with thousands is an attack on CPU time.
_MAX_SCANS = 100
_ORIENTATION = 274
# Pillow imports them at their first use.
_PLUGINS = ("Jpeg", "Mpo", "Png", "Tiff", "WebP")
_TYPES = {"PNG": "image/png", "JPEG": "image/jpeg", "WEBP": "image/webp"}


class Refused(Exception):
    pass


def load() -> None:
    for name in _PLUGINS:
        import_module(f"PIL.{name}ImagePlugin")


def redraw(content: bytes, max_side: int) -> tuple[str, bytes]:
    warnings.simplefilter("ignore")
    Image.MAX_IMAGE_PIXELS = None
    try:
        image = Image.open(io.BytesIO(content), formats=list(_TYPES))
    except UnidentifiedImageError:
        raise Refused("is not a PNG, JPEG or WebP picture") from None
    if image.width * image.height > _MAX_PIXELS:
        raise Refused(f"has more than {_MAX_PIXELS // 1_000_000} megapixels")
    # Phones put several pictures into one JPEG; viewers show the first.
    kind = "JPEG" if image.format == "MPO" else str(image.format)
    if kind == "JPEG" and content.count(b"\xff\xda") > _MAX_SCANS:
        raise Refused("has too many scans")
    image.draft("RGB", (max_side, max_side))
    drawn = _to_eight_bits(image)
    drawn.thumbnail((max_side, max_side))
    drawn = drawn.convert("RGB" if kind == "JPEG" else "RGBA")
    for transpose in _upright_transposes(image):
        drawn = drawn.transpose(transpose)
    drawn.info.clear()
    out = io.BytesIO()
    drawn.save(out, kind)
    return _TYPES[kind], out.getvalue()


def _to_eight_bits(image: Image.Image) -> Image.Image:
    """Converts 16-bit grey to 8 bits."""
    if not image.mode.startswith("I"):
        return image
    return image.convert("I").point(lambda value: value * (1 / 256)).convert("L")


def _upright_transposes(image: Image.Image) -> list[Image.Transpose]:
    """Returns the steps that turn the picture upright, by its EXIF orientation."""
    mirror, half = Image.Transpose.FLIP_LEFT_RIGHT, Image.Transpose.ROTATE_180
    left, right = Image.Transpose.ROTATE_90, Image.Transpose.ROTATE_270
    steps = {
        2: [mirror], 3: [half], 4: [mirror, half], 5: [mirror, left],
        6: [right], 7: [mirror, right], 8: [left],
    }  # fmt: skip
    try:
        return steps.get(image.getexif().get(_ORIENTATION, 1), [])
    except Exception:  # noqa: BLE001  # damaged EXIF data; the pixels may be sound
        return []


def respond(content: bytes, max_side: int) -> bytes:
    try:
        media_type, picture = redraw(content, max_side)
    except Refused as problem:
        media_type, picture = f"!{problem}", b""
    except MemoryError:
        media_type, picture = "!takes too much memory to read", b""
    except Exception:  # noqa: BLE001  # a decoder's error means a bad file
        media_type, picture = "!is a damaged picture", b""
    return media_type.encode() + b"\n" + picture


def main() -> None:
    sys.stdout.buffer.write(respond(sys.stdin.buffer.read(), int(sys.argv[1])))
