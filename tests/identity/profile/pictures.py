"""Creates picture files for tests and reads redrawn pictures."""

import io
import struct
import warnings
import zipfile
import zlib
from typing import Any

from PIL import Image, PngImagePlugin

from app.domain.identity.profile import image_child
from app.domain.identity.profile.images import NotAPicture, Picture

MARK = b"private metadata"
KINDS = ["PNG", "JPEG", "WEBP"]
TYPES = ["image/png", "image/jpeg", "image/webp"]
RED, GREEN, BLUE, WHITE = (255, 0, 0), (0, 255, 0), (0, 0, 255), (255, 255, 255)


def encode_image(image: Image.Image, kind: str, **options: Any) -> bytes:
    out = io.BytesIO()
    image.save(out, kind, **options)
    return out.getvalue()


def plain_picture(kind: str, size: tuple[int, int] = (40, 20), **options: Any) -> bytes:
    return encode_image(Image.new("RGB", size, RED), kind, **options)


def four_colours(width: int = 64, height: int = 32) -> Image.Image:
    """Red and green above, blue and white below: every rotation and reflection differs."""
    image = Image.new("RGB", (2, 2))
    for at, colour in zip([(0, 0), (1, 0), (0, 1), (1, 1)], _COLOURS, strict=True):
        image.putpixel(at, colour)
    return image.resize((width, height), Image.Resampling.NEAREST)


_COLOURS = [RED, GREEN, BLUE, WHITE]


def redraw(content: bytes, max_side: int) -> Picture:
    """Decodes and draws in this process; `images.redraw` starts one, which takes much longer."""
    pixel_limit = Image.MAX_IMAGE_PIXELS
    try:
        with warnings.catch_warnings():
            head, _, body = image_child.respond(content, max_side).partition(b"\n")
    finally:
        Image.MAX_IMAGE_PIXELS = pixel_limit
    if head.startswith(b"!"):
        raise NotAPicture(head[1:].decode())
    return Picture(body, head.decode())


def load_picture(picture: Picture) -> Image.Image:
    image = Image.open(io.BytesIO(picture.content))
    image.load()
    return image


def corner_colours(image: Image.Image) -> list[tuple[int, int, int]]:
    """Returns the nearest colours at the four corners; JPEG and WebP are not exact."""
    width, height = image.size
    points = [
        (width // 4, height // 4),
        (3 * width // 4, height // 4),
        (width // 4, 3 * height // 4),
        (3 * width // 4, 3 * height // 4),
    ]
    return [_nearest_colour(image.convert("RGB").getpixel(point)) for point in points]


def _nearest_colour(pixel: Any) -> tuple[int, int, int]:
    def distance(colour: tuple[int, int, int]) -> int:
        return sum(abs(int(a) - b) for a, b in zip(pixel, colour, strict=True))

    return min(_COLOURS, key=distance)


def one_colour_png(width: int, height: int) -> bytes:
    """Returns a one-colour PNG of one bit per pixel without holding its pixels in memory."""

    def chunk(name: bytes, body: bytes) -> bytes:
        checksum = struct.pack(">I", zlib.crc32(name + body))
        return struct.pack(">I", len(body)) + name + body + checksum

    packer = zlib.compressobj(9)
    row = bytes(1 + (width + 7) // 8)
    rows = b"".join(packer.compress(row) for _ in range(height)) + packer.flush()
    header = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")
    )


def build_samples() -> dict[str, bytes]:
    """Returns accepted files that need all parts of the decoders."""
    image, exif, texts = four_colours(), Image.Exif(), PngImagePlugin.PngInfo()
    exif[0x0112] = 6
    exif[0x8825] = {1: "N", 2: (51.0, 30.0, 0.0)}
    texts.add_text("Comment", "a", zip=True)
    texts.add_itxt("Title", "\u00e9")
    more = {"save_all": True, "append_images": [image]}
    return {
        **{f"{kind} with EXIF data": encode_image(image, kind, exif=exif) for kind in KINDS},
        "several pictures in a JPEG": encode_image(image, "MPO", **more),
        "animated PNG": encode_image(image, "PNG", **more),
        "animated WebP": encode_image(image, "WEBP", **more),
        "progressive JPEG": encode_image(image.convert("CMYK"), "JPEG", progressive=True),
        "PNG with a palette and texts": encode_image(image.convert("P"), "PNG", pnginfo=texts),
        "PNG of 16 bits": encode_image(Image.new("I;16", (64, 32), 32768), "PNG"),
    }


def zip_archive() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("hidden.txt", MARK)
    return out.getvalue()
