"""Uploads that are refused: other formats, damaged files and decompression bombs."""

import functools
import itertools
import os
import struct
import zlib
from contextlib import suppress

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image, PngImagePlugin

from app.domain.identity.profile import images
from app.domain.identity.profile.images import NotAPicture, Picture
from tests.identity.profile.pictures import (
    KINDS,
    TYPES,
    encode_image,
    four_colours,
    load_picture,
    one_colour_png,
    plain_picture,
    redraw,
    zip_archive,
)
from tests.lengths import rounds


def _build_other_files() -> dict[str, bytes]:
    return {
        "nothing": b"",
        "zeros": b"\x00" * 64,
        "text": b"a picture, honestly",
        "html": b"<!doctype html><html><body>hello</body></html>",
        "svg": b'<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"><rect/></svg>',
        "svg with xml": b'<?xml version="1.0"?>\n<svg xmlns="http://www.w3.org/2000/svg"/>',
        "gif": plain_picture("GIF"),
        "bmp": plain_picture("BMP"),
        "tiff": plain_picture("TIFF"),
        "ico": plain_picture("ICO"),
        "ppm": plain_picture("PPM"),
        "pdf": plain_picture("PDF"),
        "zip": zip_archive(),
        "eps": b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n",
        "only the start of a png": b"\x89PNG\r\n\x1a\n",
        "only the start of a jpeg": b"\xff\xd8\xff",
        "only the start of a webp": b"RIFF\x04\x00\x00\x00WEBP",
        "png behind a gif s start": b"GIF89a" + plain_picture("PNG"),
        "png not at the start": b"\n" + plain_picture("PNG"),
    }


def test_a_file_that_is_no_png_jpeg_or_webp_is_refused(subtests: pytest.Subtests) -> None:
    for name, content in _build_other_files().items():
        with subtests.test(name), pytest.raises(NotAPicture):
            redraw(content, 512)


def test_a_picture_that_is_cut_short_is_refused(subtests: pytest.Subtests) -> None:
    for share in [0.2, 0.5, 0.8]:
        for kind in KINDS:
            with subtests.test(share=share, kind=kind):
                content = encode_image(_noise(80, 60), kind)
                with pytest.raises(NotAPicture):
                    redraw(content[: int(len(content) * share)], 512)


def test_a_png_with_a_wrong_checksum_is_refused() -> None:
    content = bytearray(plain_picture("PNG"))
    content[content.index(b"IHDR") + 14] ^= 1
    with pytest.raises(NotAPicture):
        redraw(bytes(content), 512)


def test_a_refusal_states_the_reason() -> None:
    with pytest.raises(NotAPicture, match="is not a PNG, JPEG or WebP picture"):
        redraw(b"GIF89a", 512)


def test_a_picture_of_exactly_the_maximum_of_pixels_is_drawn() -> None:
    assert load_picture(redraw(one_colour_png(5000, 4000), 50)).size == (50, 40)


async def test_a_bomb_is_refused_at_once() -> None:
    content = one_colour_png(20_000, 20_000)
    assert len(content) < 100_000
    before = os.times()
    with pytest.raises(NotAPicture, match="megapixels"):
        await images.redraw(content, 512)
    after = os.times()
    # The decoder's processor time, which does not depend on the load of the machine.
    assert after.children_user - before.children_user < 2


def test_a_bomb_is_refused_before_its_pixels_are_decoded(
    monkeypatch: pytest.MonkeyPatch, subtests: pytest.Subtests
) -> None:
    def fail_on_load(_self: object, *_more: object) -> None:
        pytest.fail("the pixels were decoded")

    monkeypatch.setattr(PngImagePlugin.PngImageFile, "load", fail_on_load)
    for size in ((5_001, 4_000), (7_000, 7_000), (25_000_001, 1)):
        with subtests.test(size=size), pytest.raises(NotAPicture, match="20 megapixels"):
            redraw(one_colour_png(*size), 512)


def test_a_jpeg_of_very_many_scans_is_refused() -> None:
    """A decoder would decode the small file again for each scan."""
    content = encode_image(_noise(), "JPEG", progressive=True)
    scan = content[content.rindex(b"\xff\xda") : -2]
    with pytest.raises(NotAPicture):
        redraw(content[:-2] + scan * 500 + content[-2:], 512)


def test_compressed_text_that_expands_very_much_is_refused() -> None:
    info = PngImagePlugin.PngInfo()
    info.add(b"zTXt", b"Comment\0\0" + zlib.compress(bytes(5_000_000), 9))
    content = encode_image(four_colours(), "PNG", pnginfo=info)
    assert len(content) < 100_000
    assert _picture_or_none(content) is None


def test_damaged_exif_data_with_valid_pixels_is_accepted(subtests: pytest.Subtests) -> None:
    """A text in place of a number, beside a valid orientation."""
    for kind, tag in itertools.product(KINDS, (0x0112, 0x011A, 0x8769, 0x8825)):
        with subtests.test(kind=kind, tag=tag):
            entries = struct.pack("<HHII", 0x0112, 3, 1, 6) + struct.pack(
                "<HHI4s", tag, 2, 4, b"abc\0"
            )
            exif = b"Exif\0\0II*\0" + struct.pack("<IH", 8, 2) + entries + bytes(4)
            picture = redraw(encode_image(four_colours(), kind, exif=exif), 64)
            assert load_picture(picture).format == kind


def _picture_or_none(content: bytes) -> Picture | None:
    """Returns None for a refusal; any other error fails the test."""
    try:
        return redraw(content, 64)
    except NotAPicture:
        return None


def _fuzz(examples: int) -> settings:
    return settings(
        max_examples=rounds(examples, 10 * examples),
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )


_STARTS = [b"", b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff\xe0", b"RIFF\x40\x00\x00\x00WEBPVP8 "]


@functools.cache
def _noise(width: int = 40, height: int = 20) -> Image.Image:
    return Image.effect_noise((width, height), 60).convert("RGB")


@functools.cache
def _build_valid_files() -> list[bytes]:
    noise, more = _noise(), {"save_all": True, "append_images": [Image.new("RGB", (40, 20))]}
    return [
        encode_image(noise, "PNG"),
        encode_image(noise.convert("P"), "PNG", transparency=0),
        encode_image(noise, "PNG", **more),
        encode_image(noise, "JPEG"),
        encode_image(noise, "JPEG", progressive=True),
        encode_image(noise.convert("CMYK"), "JPEG"),
        encode_image(noise, "WEBP"),
        encode_image(noise.convert("RGBA"), "WEBP", lossless=True),
        encode_image(noise, "WEBP", **more),
    ]


_VALID_FILES = st.integers(0, 8).map(lambda index: _build_valid_files()[index])


@_fuzz(20)
@given(start=st.sampled_from(_STARTS), rest=st.binary(max_size=400))
def test_random_bytes_are_drawn_or_refused_and_nothing_else(start: bytes, rest: bytes) -> None:
    picture = _picture_or_none(start + rest)
    assert picture is None or picture.media_type in TYPES


def _fix_png_checksums(content: bytes) -> bytes:
    """Returns a damaged PNG with valid checksums, as an attacker would write it."""
    out, at = bytearray(content[:8]), 8
    while at + 12 <= len(content):
        (length,) = struct.unpack(">I", content[at : at + 4])
        if at + 12 + length > len(content):
            break
        body = content[at + 4 : at + 8 + length]
        out += content[at : at + 4] + body + struct.pack(">I", zlib.crc32(body))
        at += 12 + length
    return bytes(out + content[at:])


_EDITS = st.lists(
    st.tuples(
        st.sampled_from(["set", "remove", "insert", "cut"]),
        st.integers(0, 10_000),
        st.binary(min_size=1, max_size=12),
    ),
    min_size=1,
    max_size=6,
)


def _damage(content: bytes, edits: list[tuple[str, int, bytes]]) -> bytes:
    for operation, position, data in edits:
        at = position % (len(content) + 1)
        match operation:
            case "set":
                content = content[:at] + data + content[at + len(data) :]
            case "remove":
                content = content[:at] + content[at + len(data) :]
            case "insert":
                content = content[:at] + data + content[at:]
            case _:
                content = content[:at]
    return content


@_fuzz(40)
@given(valid_file=_VALID_FILES, edits=_EDITS, fix_checksums=st.booleans())
def test_a_damaged_picture_is_drawn_or_refused_and_nothing_else(
    valid_file: bytes, edits: list[tuple[str, int, bytes]], *, fix_checksums: bool
) -> None:
    content = _damage(valid_file, edits)
    if fix_checksums and content.startswith(b"\x89PNG"):
        content = _fix_png_checksums(content)
    picture = _picture_or_none(content)
    assert picture is None or max(load_picture(picture).size) <= 64


@_fuzz(20)
@given(valid_file=_VALID_FILES, length=st.integers(0, 5000))
def test_a_picture_cut_anywhere_is_drawn_or_refused_and_nothing_else(
    valid_file: bytes, length: int
) -> None:
    picture = _picture_or_none(valid_file[: length % len(valid_file)])
    assert picture is None or picture.media_type in TYPES


@pytest.mark.long
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(valid_file=_VALID_FILES, edits=_EDITS)
async def test_a_damaged_picture_gets_the_same_answer_from_the_process(
    valid_file: bytes, edits: list[tuple[str, int, bytes]]
) -> None:
    content = _damage(valid_file, edits)
    with suppress(NotAPicture):
        assert await images.redraw(content, 64) == redraw(content, 64)
