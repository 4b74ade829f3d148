"""Colours of customers, as the pages change them."""

from tests.web.module_runner import ModuleRunner

_COLORS = ["#ffe600", "#101040", "#808080", "#ffffff", "#000000", "#1a73e8", "#e11d48"]
_CONTRASTS = """({ contrast, makeReadable, parseColor: parse }, pairs) =>
    pairs.map(([color, surface]) =>
        contrast(makeReadable(parse(color), parse(surface)), parse(surface)))"""


def test_a_colour_is_made_readable_on_light_and_dark(modules: ModuleRunner) -> None:
    pairs = [[color, surface] for color in _COLORS for surface in ("#ffffff", "#18181b")]
    contrasts = modules.evaluate("shared/colors.js", _CONTRASTS, pairs)
    assert len(contrasts) == len(pairs)
    assert min(contrasts) >= 4.5
