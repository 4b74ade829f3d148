"""Redrawn pictures contain no metadata or trailing bytes of the upload."""

import io
import struct
import zipfile

import pytest
from PIL import Image, PngImagePlugin

from tests.identity.profile.pictures import (
    BLUE,
    GREEN,
    KINDS,
    MARK,
    RED,
    WHITE,
    corner_colours,
    encode_image,
    four_colours,
    load_picture,
    redraw,
    zip_archive,
)


def _turn_away(image: Image.Image, orientation: int) -> Image.Image:
    """Returns the pixels that a camera stores with this EXIF orientation."""
    turn = {
        2: Image.Transpose.FLIP_LEFT_RIGHT,
        3: Image.Transpose.ROTATE_180,
        4: Image.Transpose.FLIP_TOP_BOTTOM,
        5: Image.Transpose.TRANSPOSE,
        6: Image.Transpose.ROTATE_90,
        7: Image.Transpose.TRANSVERSE,
        8: Image.Transpose.ROTATE_270,
    }.get(orientation)
    return image if turn is None else image.transpose(turn)


def _exif(orientation: int = 1) -> Image.Exif:
    exif = Image.Exif()
    exif[0x0112] = orientation
    exif[0x010E] = MARK.decode()
    exif[0x8825] = {1: "N", 2: (51.0, 30.0, 0.0), 3: "W", 4: (0.0, 7.0, 0.0)}
    return exif


def test_a_picture_is_drawn_upright(subtests: pytest.Subtests) -> None:
    for kind, orientation in [
        *(("JPEG", orientation) for orientation in range(1, 9)),
        ("PNG", 6),
        ("WEBP", 6),
    ]:
        with subtests.test(kind=kind, orientation=orientation):
            content = encode_image(
                _turn_away(four_colours(), orientation), kind, exif=_exif(orientation)
            )
            drawn = load_picture(redraw(content, 512))
            assert (drawn.size, corner_colours(drawn)) == ((64, 32), [RED, GREEN, BLUE, WHITE])


def test_the_bound_holds_for_a_picture_that_was_turned(subtests: pytest.Subtests) -> None:
    for kind in KINDS:
        with subtests.test(kind=kind):
            content = encode_image(_turn_away(four_colours(600, 200), 6), kind, exif=_exif(6))
            assert load_picture(redraw(content, 60)).size == (60, 20)


def test_no_exif_survives(subtests: pytest.Subtests) -> None:
    for kind in KINDS:
        with subtests.test(kind=kind):
            content = encode_image(four_colours(), kind, exif=_exif(6))
            assert MARK in content
            picture = redraw(content, 512)
            assert MARK not in picture.content
            assert not dict(load_picture(picture).getexif())


def test_no_xmp_survives(subtests: pytest.Subtests) -> None:
    for kind in ["JPEG", "WEBP"]:
        with subtests.test(kind=kind):
            content = encode_image(four_colours(), kind, xmp=MARK)
            assert MARK in content
            assert MARK not in redraw(content, 512).content


def test_no_comment_of_a_jpeg_survives() -> None:
    content = encode_image(four_colours(), "JPEG", comment=MARK)
    assert MARK in content
    assert MARK not in redraw(content, 512).content


def test_no_colour_profile_survives(subtests: pytest.Subtests) -> None:
    for kind in KINDS:
        with subtests.test(kind=kind):
            content = encode_image(four_colours(), kind, icc_profile=MARK)
            assert Image.open(io.BytesIO(content)).info["icc_profile"] == MARK
            assert "icc_profile" not in load_picture(redraw(content, 512)).info


def test_no_text_of_a_png_survives() -> None:
    info = PngImagePlugin.PngInfo()
    info.add_text("Comment", MARK.decode())
    info.add_text("Packed", MARK.decode(), zip=True)
    info.add_itxt("Title", MARK.decode())
    info.add_itxt("XML:com.adobe.xmp", MARK.decode())
    info.add(b"prIv", MARK)
    content = encode_image(four_colours(), "PNG", pnginfo=info)
    assert content.count(MARK) == 4
    picture = redraw(content, 512)
    assert _chunks(picture.content) <= {b"IHDR", b"IDAT", b"IEND"}


def _chunks(content: bytes) -> set[bytes]:
    names, at = set(), 8
    while at < len(content):
        (length,) = struct.unpack(">I", content[at : at + 4])
        names.add(content[at + 4 : at + 8])
        at += 12 + length
    return names


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "tail",
    [
        pytest.param(b"<html><script>alert(1)</script></html>", id="html"),
        pytest.param(zip_archive(), id="zip"),
        pytest.param(MARK, id="bytes"),
    ],
)
def test_trailing_bytes_do_not_survive(kind: str, tail: bytes) -> None:
    picture = redraw(encode_image(four_colours(), kind) + tail, 512)
    assert tail not in picture.content
    assert not zipfile.is_zipfile(io.BytesIO(picture.content))


def test_a_picture_that_was_drawn_can_be_drawn_again(subtests: pytest.Subtests) -> None:
    for kind in KINDS:
        with subtests.test(kind=kind):
            once = redraw(encode_image(four_colours(), kind), 512)
            again = redraw(once.content, 512)
            assert (again.media_type, load_picture(again).size) == (once.media_type, (64, 32))
