"""Which files the chat widget sends, and how it shows their sizes."""

from app.domain.agents.knowledge import parsing
from tests.web.module_runner import ModuleRunner

_MODULE = "widget/attachments.js"


def test_the_widget_offers_the_formats_that_can_be_read(modules: ModuleRunner) -> None:
    endings = modules.evaluate(_MODULE, "({ ENDINGS }) => ENDINGS")
    assert {f".{ending}" for ending in endings} == set(parsing._KINDS)


def test_sizes_have_a_unit(modules: ModuleRunner) -> None:
    source = "({ formatSize }, sizes) => sizes.map((size) => formatSize(size, 'en-US'))"
    sizes = [0, 1, 2000, 1_500_000, 10_485_760]
    assert modules.evaluate(_MODULE, source, sizes) == ["1 kB", "1 kB", "2 kB", "1.4 MB", "10 MB"]
    source = "({ formatSize }) => formatSize(2048, 'no-such-language!')"
    assert modules.evaluate(_MODULE, source)
