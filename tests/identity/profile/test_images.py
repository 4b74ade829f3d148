"""Redrawn pictures have the type, size and look of the upload."""

import asyncio
import io
import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from app.domain.identity.profile import images
from tests.identity.profile.pictures import (
    BLUE,
    GREEN,
    KINDS,
    RED,
    TYPES,
    WHITE,
    build_samples,
    corner_colours,
    encode_image,
    four_colours,
    load_picture,
    plain_picture,
    redraw,
)

# Accepted pictures


def test_a_picture_keeps_its_type_size_and_look(subtests: pytest.Subtests) -> None:
    for kind, media_type in zip(KINDS, TYPES, strict=True):
        with subtests.test(kind):
            picture = redraw(encode_image(four_colours(64, 32), kind), 512)
            drawn = load_picture(picture)
            assert (picture.media_type, drawn.format) == (media_type, kind)
            assert drawn.size == (64, 32)
            assert corner_colours(drawn) == [RED, GREEN, BLUE, WHITE]


async def test_the_process_draws_like_the_decoder_in_it(subtests: pytest.Subtests) -> None:
    """It can load no module of a decoder once it reads the picture."""
    for name, content in build_samples().items():
        with subtests.test(name):
            assert await images.redraw(content, 50) == redraw(content, 50)


def test_a_large_picture_is_drawn_smaller_in_its_proportions(subtests: pytest.Subtests) -> None:
    sizes = [((1000, 500), (100, 50)), ((500, 1000), (50, 100)), ((101, 101), (100, 100))]
    for kind, (size, expected) in itertools.product(KINDS, sizes):
        with subtests.test(kind=kind, size=size):
            assert load_picture(redraw(plain_picture(kind, size), 100)).size == expected


def test_a_thin_picture_keeps_at_least_one_pixel() -> None:
    assert load_picture(redraw(plain_picture("PNG", (5000, 1)), 100)).size == (100, 1)


@settings(max_examples=15, deadline=None)
@given(
    kind=st.sampled_from(KINDS),
    width=st.integers(1, 300),
    height=st.integers(1, 300),
    max_side=st.integers(1, 120),
)
def test_no_side_is_longer_than_the_bound(
    kind: str, width: int, height: int, max_side: int
) -> None:
    drawn = load_picture(redraw(plain_picture(kind, (width, height)), max_side))
    assert max(drawn.size) <= max_side


def test_every_usual_mode_is_drawn(subtests: pytest.Subtests) -> None:
    modes = {"PNG": ["1", "L", "LA", "P", "RGB", "RGBA"], "JPEG": ["L", "RGB", "CMYK"]}
    for kind, mode in [(name, mode) for name in modes for mode in modes[name]]:
        with subtests.test(kind=kind, mode=mode):
            content = encode_image(Image.new(mode, (40, 20)), kind)
            assert load_picture(redraw(content, 8)).size == (8, 4)


def test_a_progressive_jpeg_is_drawn() -> None:
    picture = redraw(encode_image(four_colours(), "JPEG", progressive=True), 512)
    assert corner_colours(load_picture(picture)) == [RED, GREEN, BLUE, WHITE]


def test_transparency_is_preserved(subtests: pytest.Subtests) -> None:
    for kind in ["PNG", "WEBP"]:
        with subtests.test(kind=kind):
            image = Image.new("RGBA", (64, 32), (255, 0, 0, 255))
            image.paste((0, 0, 0, 0), (32, 0, 64, 32))
            content = encode_image(image, kind, **({"lossless": True} if kind == "WEBP" else {}))
            alpha = load_picture(redraw(content, 512)).getchannel("A")
            assert (alpha.getpixel((8, 16)), alpha.getpixel((56, 16))) == (255, 0)


def test_the_transparent_colour_of_a_palette_is_preserved() -> None:
    image = Image.new("P", (40, 20), 1)
    image.putpalette([255, 0, 0, 0, 255, 0])
    image.paste(0, (0, 0, 20, 20))
    drawn = load_picture(redraw(encode_image(image, "PNG", transparency=0), 512))
    assert (drawn.getpixel((5, 10)), drawn.getpixel((35, 10))) == ((255, 0, 0, 0), (0, 255, 0, 255))


def test_one_frame_of_an_animation_is_kept(subtests: pytest.Subtests) -> None:
    for kind in ["PNG", "WEBP"]:
        with subtests.test(kind=kind):
            frames = [Image.new("RGB", (40, 20), colour) for colour in (RED, GREEN, BLUE)]
            content = encode_image(
                frames[0], kind, save_all=True, append_images=frames[1:], duration=100
            )
            assert getattr(Image.open(io.BytesIO(content)), "n_frames", 1) == 3
            drawn = load_picture(redraw(content, 512))
            assert getattr(drawn, "n_frames", 1) == 1
            assert corner_colours(drawn) == [RED] * 4


def test_the_first_of_several_pictures_in_a_jpeg_is_kept() -> None:
    """Phones write such files."""
    content = encode_image(
        Image.new("RGB", (40, 20), RED),
        "MPO",
        save_all=True,
        append_images=[Image.new("RGB", (40, 20), BLUE)],
    )
    picture = redraw(content, 512)
    drawn = load_picture(picture)
    assert (picture.media_type, drawn.format) == ("image/jpeg", "JPEG")
    assert corner_colours(drawn) == [RED] * 4


async def test_many_pictures_at_once_are_all_drawn() -> None:
    contents = [encode_image(four_colours(), kind) for kind in KINDS]
    drawn = await asyncio.gather(*(images.redraw(content, 512) for content in contents))
    assert [picture.media_type for picture in drawn] == TYPES


def test_sixteen_bits_of_grey_keep_their_grey(subtests: pytest.Subtests) -> None:
    for size in [(40, 20), (1200, 800)]:
        with subtests.test(size=size):
            content = encode_image(Image.new("I;16", size, 32768), "PNG")
            drawn = load_picture(redraw(content, 64)).convert("L")
            assert set(drawn.tobytes()) <= {127, 128}
