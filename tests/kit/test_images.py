"""Redrawn pictures have the type, size and look of the upload."""

import asyncio
import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from app.kit import images
from tests.kit.pictures import (
    BLUE,
    GREEN,
    KINDS,
    RED,
    TYPES,
    WHITE,
    corner_colours,
    encode_image,
    four_colours,
    load_picture,
    plain_picture,
)

# Accepted pictures


@pytest.mark.parametrize(("kind", "media_type"), list(zip(KINDS, TYPES, strict=True)))
async def test_the_media_type_comes_from_the_content(kind: str, media_type: str) -> None:
    assert (await images.redraw(plain_picture(kind), 512)).media_type == media_type


@pytest.mark.parametrize("kind", KINDS)
async def test_the_content_has_the_format_of_the_media_type(kind: str) -> None:
    assert load_picture(await images.redraw(plain_picture(kind), 512)).format == kind


@pytest.mark.parametrize("kind", KINDS)
async def test_the_picture_looks_like_the_upload(kind: str) -> None:
    picture = await images.redraw(encode_image(four_colours(), kind), 512)
    assert corner_colours(load_picture(picture)) == [RED, GREEN, BLUE, WHITE]


@pytest.mark.parametrize("kind", KINDS)
async def test_a_small_picture_keeps_its_size(kind: str) -> None:
    assert load_picture(await images.redraw(plain_picture(kind, (40, 20)), 512)).size == (40, 20)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("size", "expected"),
    [((1000, 500), (100, 50)), ((500, 1000), (50, 100)), ((101, 101), (100, 100))],
)
async def test_a_large_picture_is_drawn_smaller_in_its_proportions(
    kind: str, size: tuple[int, int], expected: tuple[int, int]
) -> None:
    assert load_picture(await images.redraw(plain_picture(kind, size), 100)).size == expected


async def test_a_thin_picture_keeps_at_least_one_pixel() -> None:
    assert load_picture(await images.redraw(plain_picture("PNG", (5000, 1)), 100)).size == (100, 1)


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
    drawn = load_picture(await images.redraw(plain_picture(kind, (width, height)), max_side))
    assert max(drawn.size) <= max_side


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA"])
async def test_every_usual_mode_of_a_png_is_drawn(mode: str) -> None:
    content = encode_image(Image.new(mode, (40, 20)), "PNG")
    assert load_picture(await images.redraw(content, 8)).size == (8, 4)


@pytest.mark.parametrize("mode", ["L", "RGB", "CMYK"])
async def test_every_usual_mode_of_a_jpeg_is_drawn(mode: str) -> None:
    content = encode_image(Image.new(mode, (40, 20)), "JPEG")
    assert load_picture(await images.redraw(content, 8)).size == (8, 4)


async def test_a_progressive_jpeg_is_drawn() -> None:
    picture = await images.redraw(encode_image(four_colours(), "JPEG", progressive=True), 512)
    assert corner_colours(load_picture(picture)) == [RED, GREEN, BLUE, WHITE]


@pytest.mark.parametrize("kind", ["PNG", "WEBP"])
async def test_transparency_is_preserved(kind: str) -> None:
    image = Image.new("RGBA", (64, 32), (255, 0, 0, 255))
    image.paste((0, 0, 0, 0), (32, 0, 64, 32))
    content = encode_image(image, kind, **({"lossless": True} if kind == "WEBP" else {}))
    alpha = load_picture(await images.redraw(content, 512)).getchannel("A")
    assert (alpha.getpixel((8, 16)), alpha.getpixel((56, 16))) == (255, 0)


async def test_the_transparent_colour_of_a_palette_is_preserved() -> None:
    image = Image.new("P", (40, 20), 1)
    image.putpalette([255, 0, 0, 0, 255, 0])
    image.paste(0, (0, 0, 20, 20))
    drawn = load_picture(await images.redraw(encode_image(image, "PNG", transparency=0), 512))
    assert (drawn.getpixel((5, 10)), drawn.getpixel((35, 10))) == ((255, 0, 0, 0), (0, 255, 0, 255))


@pytest.mark.parametrize("kind", ["PNG", "WEBP"])
async def test_one_frame_of_an_animation_is_kept(kind: str) -> None:
    frames = [Image.new("RGB", (40, 20), colour) for colour in (RED, GREEN, BLUE)]
    content = encode_image(frames[0], kind, save_all=True, append_images=frames[1:], duration=100)
    assert getattr(Image.open(io.BytesIO(content)), "n_frames", 1) == 3
    drawn = load_picture(await images.redraw(content, 512))
    assert getattr(drawn, "n_frames", 1) == 1
    assert corner_colours(drawn) == [RED] * 4


async def test_the_first_of_several_pictures_in_a_jpeg_is_kept() -> None:
    """Phones write such files."""
    content = encode_image(
        Image.new("RGB", (40, 20), RED),
        "MPO",
        save_all=True,
        append_images=[Image.new("RGB", (40, 20), BLUE)],
    )
    picture = await images.redraw(content, 512)
    drawn = load_picture(picture)
    assert (picture.media_type, drawn.format) == ("image/jpeg", "JPEG")
    assert corner_colours(drawn) == [RED] * 4


async def test_many_pictures_at_once_are_all_drawn() -> None:
    contents = [encode_image(four_colours(), kind) for kind in KINDS * 3]
    drawn = await asyncio.gather(*(images.redraw(content, 512) for content in contents))
    assert [picture.media_type for picture in drawn] == TYPES * 3


@pytest.mark.parametrize("size", [(40, 20), (1200, 800)])
async def test_sixteen_bits_of_grey_keep_their_grey(size: tuple[int, int]) -> None:
    content = encode_image(Image.new("I;16", size, 32768), "PNG")
    drawn = load_picture(await images.redraw(content, 64)).convert("L")
    assert set(drawn.tobytes()) <= {127, 128}
