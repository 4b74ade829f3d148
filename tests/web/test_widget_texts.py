"""The fixed texts of the chat widget."""

import re

import pytest

from app.kit.languages import LANGUAGES
from app.web import assets
from tests.web.module_runner import ModuleRunner

_READ = "({ TEXTS }) => TEXTS"
_NAMES = re.compile(r"\{(\w+)\}")
# The launcher has these texts itself, so that it loads nothing else.
_LAUNCHER = {"open": "Open chat", "unread": "{count} unread"}


def test_every_language_has_all_texts(modules: ModuleRunner, subtests: pytest.Subtests) -> None:
    english = {**_LAUNCHER, **modules.evaluate("widget/texts.js", _READ)}
    for language in LANGUAGES[1:]:
        texts = modules.evaluate(f"widget/languages/{language}.js", _READ)
        with subtests.test(language):
            assert texts.keys() == english.keys()
        for name, text in texts.items():
            with subtests.test(language, name=name):
                # They are worded so that they fit any number.
                assert isinstance(text, str)
                assert text.strip()
                assert sorted(_NAMES.findall(text)) == sorted(_NAMES.findall(english[name]))


def test_a_language_is_loaded_where_it_is_needed() -> None:
    for entry in ("widget/panel.js", "widget/frame-host.js", "widget/frame.js"):
        assert not any("languages" in path for path in assets.list_imports(entry))
    source = (assets._STATIC / "widget/languages.js").read_text(encoding="utf-8")
    for language in LANGUAGES[1:]:
        assert f'{language}: () => import("./languages/{language}.js"),' in source


def test_the_launcher_has_its_texts() -> None:
    source = (assets._STATIC / "widget/launcher.js").read_text(encoding="utf-8")
    for text in _LAUNCHER.values():
        assert f'"{text}"' in source
