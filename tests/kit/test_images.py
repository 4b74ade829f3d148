"""Pictures from outside: what is taken, what is refused, and what of a file survives."""

import asyncio
import io
import struct
import time
import zipfile
import zlib
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image, PngImagePlugin

from app.kit import image_child, images
from app.kit.images import NotAPicture, Picture
from tests.stores import wait_for

MARK = b"what nobody should keep"
KINDS = ["PNG", "JPEG", "WEBP"]
TYPES = ["image/png", "image/jpeg", "image/webp"]
RED, GREEN, BLUE, WHITE = (255, 0, 0), (0, 255, 0), (0, 0, 255), (255, 255, 255)


def _file(image: Image.Image, kind: str, **more: Any) -> bytes:
    out = io.BytesIO()
    image.save(out, kind, **more)
    return out.getvalue()


def _plain(kind: str, size: tuple[int, int] = (40, 20), **more: Any) -> bytes:
    return _file(Image.new("RGB", size, RED), kind, **more)


def _corners(width: int = 64, height: int = 32) -> Image.Image:
    """Red and green above, blue and white below: every turn and mirror image is told apart."""
    image = Image.new("RGB", (2, 2))
    for at, colour in zip([(0, 0), (1, 0), (0, 1), (1, 1)], _COLOURS, strict=True):
        image.putpixel(at, colour)
    return image.resize((width, height), Image.Resampling.NEAREST)


_COLOURS = [RED, GREEN, BLUE, WHITE]


def _opened(picture: Picture) -> Image.Image:
    image = Image.open(io.BytesIO(picture.content))
    image.load()
    return image


def _corners_of(image: Image.Image) -> list[tuple[int, int, int]]:
    """The colours at the four corners; nearest, because JPEG and WebP are not exact."""
    width, height = image.size
    spots = [
        (width // 4, height // 4),
        (3 * width // 4, height // 4),
        (width // 4, 3 * height // 4),
        (3 * width // 4, 3 * height // 4),
    ]
    return [_nearest(image.convert("RGB").getpixel(spot)) for spot in spots]


def _nearest(pixel: Any) -> tuple[int, int, int]:
    def distance(colour: tuple[int, int, int]) -> int:
        return sum(abs(int(a) - b) for a, b in zip(pixel, colour, strict=True))

    return min(_COLOURS, key=distance)


def _png(width: int, height: int) -> bytes:
    """A one-colour PNG, one bit a pixel, written without ever holding its pixels."""

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


# What is taken


@pytest.mark.parametrize(
    ("kind", "media_type"),
    list(zip(KINDS, TYPES, strict=True)),
)
async def test_the_type_is_told_by_the_content(kind: str, media_type: str) -> None:
    assert (await images.redraw(_plain(kind), 512)).media_type == media_type


@pytest.mark.parametrize("kind", KINDS)
async def test_the_answer_is_of_the_kind_that_it_says(kind: str) -> None:
    assert _opened(await images.redraw(_plain(kind), 512)).format == kind


@pytest.mark.parametrize("kind", KINDS)
async def test_the_picture_looks_as_the_one_sent(kind: str) -> None:
    picture = await images.redraw(_file(_corners(), kind), 512)
    assert _corners_of(_opened(picture)) == [RED, GREEN, BLUE, WHITE]


@pytest.mark.parametrize("kind", KINDS)
async def test_a_small_picture_keeps_its_size(kind: str) -> None:
    assert _opened(await images.redraw(_plain(kind, (40, 20)), 512)).size == (40, 20)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("size", "expected"),
    [((1000, 500), (100, 50)), ((500, 1000), (50, 100)), ((101, 101), (100, 100))],
)
async def test_a_large_picture_is_drawn_smaller_in_its_proportions(
    kind: str, size: tuple[int, int], expected: tuple[int, int]
) -> None:
    assert _opened(await images.redraw(_plain(kind, size), 100)).size == expected


async def test_a_picture_of_one_thin_line_keeps_at_least_a_pixel() -> None:
    assert _opened(await images.redraw(_plain("PNG", (5000, 1)), 100)).size == (100, 1)


@settings(max_examples=15, deadline=None)
@given(
    kind=st.sampled_from(KINDS),
    width=st.integers(1, 300),
    height=st.integers(1, 300),
    max_side=st.integers(1, 120),
)
async def test_no_side_is_longer_than_the_bound(
    kind: str, width: int, height: int, max_side: int
) -> None:
    drawn = _opened(await images.redraw(_plain(kind, (width, height)), max_side))
    assert max(drawn.size) <= max_side


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA"])
async def test_every_usual_mode_of_a_png_is_drawn(mode: str) -> None:
    content = _file(Image.new(mode, (40, 20)), "PNG")
    assert _opened(await images.redraw(content, 8)).size == (8, 4)


@pytest.mark.parametrize("mode", ["L", "RGB", "CMYK"])
async def test_every_usual_mode_of_a_jpeg_is_drawn(mode: str) -> None:
    content = _file(Image.new(mode, (40, 20)), "JPEG")
    assert _opened(await images.redraw(content, 8)).size == (8, 4)


async def test_a_progressive_jpeg_is_drawn() -> None:
    picture = await images.redraw(_file(_corners(), "JPEG", progressive=True), 512)
    assert _corners_of(_opened(picture)) == [RED, GREEN, BLUE, WHITE]


@pytest.mark.parametrize("kind", ["PNG", "WEBP"])
async def test_what_is_seen_through_stays_so(kind: str) -> None:
    image = Image.new("RGBA", (64, 32), (255, 0, 0, 255))
    image.paste((0, 0, 0, 0), (32, 0, 64, 32))
    content = _file(image, kind, **({"lossless": True} if kind == "WEBP" else {}))
    alpha = _opened(await images.redraw(content, 512)).getchannel("A")
    assert (alpha.getpixel((8, 16)), alpha.getpixel((56, 16))) == (255, 0)


async def test_the_transparent_colour_of_a_palette_stays_so() -> None:
    image = Image.new("P", (40, 20), 1)
    image.putpalette([255, 0, 0, 0, 255, 0])
    image.paste(0, (0, 0, 20, 20))
    drawn = _opened(await images.redraw(_file(image, "PNG", transparency=0), 512))
    assert (drawn.getpixel((5, 10)), drawn.getpixel((35, 10))) == ((255, 0, 0, 0), (0, 255, 0, 255))


@pytest.mark.parametrize("kind", ["PNG", "WEBP"])
async def test_one_frame_of_an_animation_is_kept(kind: str) -> None:
    frames = [Image.new("RGB", (40, 20), colour) for colour in (RED, GREEN, BLUE)]
    content = _file(frames[0], kind, save_all=True, append_images=frames[1:], duration=100)
    assert getattr(Image.open(io.BytesIO(content)), "n_frames", 1) == 3
    drawn = _opened(await images.redraw(content, 512))
    assert getattr(drawn, "n_frames", 1) == 1
    assert _corners_of(drawn) == [RED] * 4


async def test_the_first_of_several_pictures_in_a_jpeg_is_kept() -> None:
    """As phones write them."""
    content = _file(
        Image.new("RGB", (40, 20), RED),
        "MPO",
        save_all=True,
        append_images=[Image.new("RGB", (40, 20), BLUE)],
    )
    picture = await images.redraw(content, 512)
    drawn = _opened(picture)
    assert (picture.media_type, drawn.format) == ("image/jpeg", "JPEG")
    assert _corners_of(drawn) == [RED] * 4


# What does not survive


def _turned(image: Image.Image, orientation: int) -> Image.Image:
    """What a camera stores, held so that `orientation` brings the picture upright again."""
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


@pytest.mark.parametrize(
    ("kind", "orientation"),
    [*(("JPEG", orientation) for orientation in range(1, 9)), ("PNG", 6), ("WEBP", 6)],
)
async def test_a_picture_is_drawn_upright(kind: str, orientation: int) -> None:
    content = _file(_turned(_corners(), orientation), kind, exif=_exif(orientation))
    drawn = _opened(await images.redraw(content, 512))
    assert (drawn.size, _corners_of(drawn)) == ((64, 32), [RED, GREEN, BLUE, WHITE])


@pytest.mark.parametrize("kind", KINDS)
async def test_the_bound_holds_for_a_picture_that_was_turned(kind: str) -> None:
    content = _file(_turned(_corners(600, 200), 6), kind, exif=_exif(6))
    assert _opened(await images.redraw(content, 60)).size == (60, 20)


@pytest.mark.parametrize("kind", KINDS)
async def test_no_exif_survives(kind: str) -> None:
    content = _file(_corners(), kind, exif=_exif(6))
    assert MARK in content
    picture = await images.redraw(content, 512)
    assert MARK not in picture.content
    assert not dict(_opened(picture).getexif())


@pytest.mark.parametrize("kind", ["JPEG", "WEBP"])
async def test_no_xmp_survives(kind: str) -> None:
    content = _file(_corners(), kind, xmp=MARK)
    assert MARK in content
    assert MARK not in (await images.redraw(content, 512)).content


async def test_no_comment_of_a_jpeg_survives() -> None:
    content = _file(_corners(), "JPEG", comment=MARK)
    assert MARK in content
    assert MARK not in (await images.redraw(content, 512)).content


@pytest.mark.parametrize("kind", KINDS)
async def test_no_colour_profile_survives(kind: str) -> None:
    content = _file(_corners(), kind, icc_profile=MARK)
    assert Image.open(io.BytesIO(content)).info["icc_profile"] == MARK
    assert "icc_profile" not in _opened(await images.redraw(content, 512)).info


async def test_no_text_of_a_png_survives() -> None:
    told = PngImagePlugin.PngInfo()
    told.add_text("Comment", MARK.decode())
    told.add_text("Packed", MARK.decode(), zip=True)
    told.add_itxt("Title", MARK.decode())
    told.add_itxt("XML:com.adobe.xmp", MARK.decode())
    told.add(b"prIv", MARK)
    content = _file(_corners(), "PNG", pnginfo=told)
    assert content.count(MARK) == 4
    picture = await images.redraw(content, 512)
    assert _chunks(picture.content) <= {b"IHDR", b"IDAT", b"IEND"}


def _chunks(content: bytes) -> set[bytes]:
    names, at = set(), 8
    while at < len(content):
        (length,) = struct.unpack(">I", content[at : at + 4])
        names.add(content[at + 4 : at + 8])
        at += 12 + length
    return names


def _archive() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("hidden.txt", MARK)
    return out.getvalue()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "tail",
    [
        pytest.param(b"<html><script>alert(1)</script></html>", id="html"),
        pytest.param(_archive(), id="zip"),
        pytest.param(MARK, id="bytes"),
    ],
)
async def test_nothing_that_trails_the_picture_survives(kind: str, tail: bytes) -> None:
    picture = await images.redraw(_file(_corners(), kind) + tail, 512)
    assert tail not in picture.content
    assert not zipfile.is_zipfile(io.BytesIO(picture.content))


@pytest.mark.parametrize("kind", KINDS)
async def test_a_picture_that_was_drawn_can_be_drawn_again(kind: str) -> None:
    once = await images.redraw(_file(_corners(), kind), 512)
    again = await images.redraw(once.content, 512)
    assert (again.media_type, _opened(again).size) == (once.media_type, (64, 32))


# What is refused


def _other(kind: str) -> bytes:
    return _plain(kind)


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"\x00" * 64, id="zeros"),
        pytest.param(b"a picture, honestly", id="text"),
        pytest.param(b"<!doctype html><html><body>hello</body></html>", id="html"),
        pytest.param(
            b'<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"><rect/></svg>', id="svg"
        ),
        pytest.param(
            b'<?xml version="1.0"?>\n<svg xmlns="http://www.w3.org/2000/svg"/>', id="svg-with-xml"
        ),
        pytest.param(_other("GIF"), id="gif"),
        pytest.param(_other("BMP"), id="bmp"),
        pytest.param(_other("TIFF"), id="tiff"),
        pytest.param(_other("ICO"), id="ico"),
        pytest.param(_other("PPM"), id="ppm"),
        pytest.param(_other("PDF"), id="pdf"),
        pytest.param(_archive(), id="zip"),
        pytest.param(b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n", id="eps"),
        pytest.param(b"\x89PNG\r\n\x1a\n", id="only-the-start-of-a-png"),
        pytest.param(b"\xff\xd8\xff", id="only-the-start-of-a-jpeg"),
        pytest.param(b"RIFF\x04\x00\x00\x00WEBP", id="only-the-start-of-a-webp"),
        pytest.param(b"GIF89a" + _plain("PNG"), id="png-behind-a-gif-s-start"),
        pytest.param(b"\n" + _plain("PNG"), id="png-not-at-the-start"),
    ],
)
async def test_what_is_no_png_jpeg_or_webp_is_refused(content: bytes) -> None:
    with pytest.raises(NotAPicture):
        await images.redraw(content, 512)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("share", [0.2, 0.5, 0.8])
async def test_a_picture_that_is_cut_short_is_refused(kind: str, share: float) -> None:
    noise = Image.effect_noise((80, 60), 60).convert("RGB")
    content = _file(noise, kind)
    with pytest.raises(NotAPicture):
        await images.redraw(content[: int(len(content) * share)], 512)


async def test_a_png_with_a_wrong_checksum_is_refused() -> None:
    content = bytearray(_plain("PNG"))
    content[content.index(b"IHDR") + 14] ^= 1
    with pytest.raises(NotAPicture):
        await images.redraw(bytes(content), 512)


async def test_a_refusal_says_why_to_the_one_who_sent_it() -> None:
    with pytest.raises(NotAPicture, match="is not a PNG, JPEG or WebP picture"):
        await images.redraw(b"GIF89a", 512)


async def test_a_picture_of_too_many_pixels_is_refused() -> None:
    with pytest.raises(NotAPicture, match="20 megapixels"):
        await images.redraw(_png(5001, 4000), 512)


async def test_a_picture_of_just_as_many_pixels_as_are_taken_is_drawn() -> None:
    assert _opened(await images.redraw(_png(5000, 4000), 50)).size == (50, 40)


BOMBS = pytest.mark.parametrize("size", [(20_000, 20_000), (7_000, 7_000), (25_000_001, 1)])


@BOMBS
async def test_a_bomb_is_refused_at_once(size: tuple[int, int]) -> None:
    content = _png(*size)
    assert len(content) < 100_000
    started = time.perf_counter()
    with pytest.raises(NotAPicture, match="megapixels"):
        await images.redraw(content, 512)
    assert time.perf_counter() - started < 2


@BOMBS
def test_a_bomb_is_refused_before_its_pixels_are_decoded(
    size: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    def decoded(_self: object, *_more: object) -> None:
        pytest.fail("the pixels were decoded")

    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", Image.MAX_IMAGE_PIXELS)
    monkeypatch.setattr(PngImagePlugin.PngImageFile, "load", decoded)
    with pytest.raises(image_child.Refused):
        image_child.redraw(_png(*size), 512)


async def test_a_jpeg_of_very_many_scans_is_refused() -> None:
    """A file of some kilobytes that would be decoded again for each of them."""
    content = _file(_NOISE, "JPEG", progressive=True)
    scan = content[content.rindex(b"\xff\xda") : -2]
    with pytest.raises(NotAPicture):
        await images.redraw(content[:-2] + scan * 500 + content[-2:], 512)


async def test_packed_text_that_unpacks_to_very_much_is_refused() -> None:
    told = PngImagePlugin.PngInfo()
    told.add(b"zTXt", b"Comment\0\0" + zlib.compress(bytes(50_000_000), 9))
    content = _file(_corners(), "PNG", pnginfo=told)
    assert len(content) < 100_000
    assert await _picture_or_none(content) is None


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("tag", [0x0112, 0x011A, 0x8769, 0x8825])
async def test_damaged_notes_beside_sound_pixels_do_no_harm(kind: str, tag: int) -> None:
    """A text where a number belongs, beside a sound orientation."""
    entries = struct.pack("<HHII", 0x0112, 3, 1, 6) + struct.pack("<HHI4s", tag, 2, 4, b"abc\0")
    exif = b"Exif\0\0II*\0" + struct.pack("<IH", 8, 2) + entries + bytes(4)
    picture = await images.redraw(_file(_corners(), kind, exif=exif), 64)
    assert _opened(picture).format == kind


async def _picture_or_none(content: bytes) -> Picture | None:
    """None for a refusal; any other error is the test's failure."""
    try:
        return await images.redraw(content, 64)
    except NotAPicture:
        return None


def _fuzz(examples: int) -> settings:
    """Few: each is a process of its own."""
    return settings(
        max_examples=examples,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )


_STARTS = [b"", b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff\xe0", b"RIFF\x40\x00\x00\x00WEBPVP8 "]
_NOISE = Image.effect_noise((40, 20), 60).convert("RGB")
_SOUND = [
    _file(_NOISE, "PNG"),
    _file(_NOISE.convert("P"), "PNG", transparency=0),
    _file(_NOISE, "PNG", save_all=True, append_images=[Image.new("RGB", (40, 20))]),
    _file(_NOISE, "JPEG"),
    _file(_NOISE, "JPEG", progressive=True),
    _file(_NOISE.convert("CMYK"), "JPEG"),
    _file(_NOISE, "WEBP"),
    _file(_NOISE.convert("RGBA"), "WEBP", lossless=True),
    _file(_NOISE, "WEBP", save_all=True, append_images=[Image.new("RGB", (40, 20))]),
]


@_fuzz(20)
@given(start=st.sampled_from(_STARTS), rest=st.binary(max_size=400))
async def test_random_bytes_are_drawn_or_refused_and_nothing_else(
    start: bytes, rest: bytes
) -> None:
    picture = await _picture_or_none(start + rest)
    assert picture is None or picture.media_type in TYPES


def _with_right_checksums(content: bytes) -> bytes:
    """A damaged PNG as an attacker would write it: damaged, and its checksums agree."""
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


def _damaged(content: bytes, edits: list[tuple[str, int, bytes]]) -> bytes:
    for how, where, what in edits:
        at = where % (len(content) + 1)
        match how:
            case "set":
                content = content[:at] + what + content[at + len(what) :]
            case "remove":
                content = content[:at] + content[at + len(what) :]
            case "insert":
                content = content[:at] + what + content[at:]
            case _:
                content = content[:at]
    return content


@_fuzz(40)
@given(sound=st.sampled_from(_SOUND), edits=_EDITS, mend=st.booleans())
async def test_a_damaged_picture_is_drawn_or_refused_and_nothing_else(
    sound: bytes, edits: list[tuple[str, int, bytes]], *, mend: bool
) -> None:
    content = _damaged(sound, edits)
    if mend and content.startswith(b"\x89PNG"):
        content = _with_right_checksums(content)
    picture = await _picture_or_none(content)
    assert picture is None or max(_opened(picture).size) <= 64


@_fuzz(20)
@given(sound=st.sampled_from(_SOUND), kept=st.integers(0, 5000))
async def test_a_picture_cut_anywhere_is_drawn_or_refused_and_nothing_else(
    sound: bytes, kept: int
) -> None:
    picture = await _picture_or_none(sound[: kept % len(sound)])
    assert picture is None or picture.media_type in TYPES


# The child


def _program(folder: Path, text: str) -> Path:
    path = folder / "program.py"
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("import os; os.abort()", id="crash"),
        pytest.param("raise SystemExit(3)", id="error"),
        pytest.param("pass", id="silence"),
        pytest.param("print('image/png'); raise SystemExit(1)", id="error after a half answer"),
    ],
)
async def test_a_decoder_that_gives_up_is_a_refusal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setattr(images, "_PROGRAM", _program(tmp_path, text))
    with pytest.raises(NotAPicture):
        await images.redraw(_plain("PNG"), 512)


def _running(program: Path) -> bool:
    """Whether a child of this process still runs the program."""
    for child in psutil.Process().children():
        with suppress(psutil.NoSuchProcess):
            if str(program) in child.cmdline():
                return True
    return False


async def test_a_decoder_that_takes_too_long_is_ended_and_a_refusal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = _program(tmp_path, "import time; time.sleep(60)")
    monkeypatch.setattr(images, "_PROGRAM", program)
    monkeypatch.setattr(images, "_SECONDS", 0.2)
    with pytest.raises(NotAPicture):
        await images.redraw(_plain("PNG"), 512)
    assert not _running(program)


async def test_a_decoder_is_ended_when_its_caller_goes_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = _program(tmp_path, "import time; time.sleep(60)")
    monkeypatch.setattr(images, "_PROGRAM", program)
    task = asyncio.create_task(images.redraw(_plain("PNG"), 512))
    await asyncio.to_thread(wait_for, lambda: _running(program), 30, "the decoder's start")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not _running(program)


@pytest.mark.parametrize(
    "deed",
    [
        pytest.param("bytearray(1 << 30)", id="memory"),
        pytest.param("open('written', 'wb', buffering=0).write(b'x')", id="file"),
        pytest.param("[open(os.devnull) for _ in range(64)]", id="handles"),
    ],
)
async def test_a_decoder_gets_no_more_than_it_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, deed: str
) -> None:
    text = (
        f"import os, runpy\nos.chdir({str(tmp_path)!r})\n"
        f"runpy.run_path({str(images._PROGRAM)!r})['limit']()\n{{}}\nprint('image/png')"
    )
    monkeypatch.setattr(images, "_PROGRAM", _program(tmp_path, text.format("pass")))
    assert (await images.redraw(b"", 512)).media_type == "image/png"
    _program(tmp_path, text.format(deed))
    with pytest.raises(NotAPicture):
        await images.redraw(b"", 512)


async def test_many_pictures_at_once_are_all_drawn() -> None:
    contents = [_file(_corners(), kind) for kind in KINDS * 3]
    drawn = await asyncio.gather(*(images.redraw(content, 512) for content in contents))
    assert [picture.media_type for picture in drawn] == TYPES * 3


@pytest.mark.parametrize("size", [(40, 20), (1200, 800)])
async def test_sixteen_bits_of_grey_keep_their_grey(size: tuple[int, int]) -> None:
    content = _file(Image.new("I;16", size, 32768), "PNG")
    drawn = _opened(await images.redraw(content, 64)).convert("L")
    assert set(drawn.tobytes()) <= {127, 128}
