"""The fixed texts of the form page."""

import re
from pathlib import Path
from typing import Any

import pytest

from app.domain.forms.conversation.phrases import get_phrases
from app.domain.forms.definition.fields.choice_parser import parse_consent
from app.domain.forms.definition.fields.language_tables import speak
from app.domain.forms.definition.fields.wordings import _PROBLEMS as SERVER_PROBLEMS
from app.kit.languages import ENGLISH, LANGUAGES
from app.kit.plurals import list_categories
from app.web import assets
from tests.web.module_runner import ModuleRunner

_TEXTS = "form/texts.js"
_READ = "({ TEXTS, PROBLEMS }) => [TEXTS, PROBLEMS]"
_FILL = """({ getText }, cases) => cases.map(([name, values]) => getText(name, values))"""
_PROBLEMS = "form/problems.js"
# Each function leaves the page in English, for the next one.
_SPEAK = """async ({ loadLanguage }, language) => {
    const url = "@folder@/";
    const texts = await import(url + "texts.js");
    const { getText, formatNumber, formatSize, useTable, TEXTS, PROBLEMS } = texts;
    const { Problem } = await import(url + "problems.js");
    await loadLanguage(language);
    const problem = new Problem("date");
    const said = [getText("next"), getText("problemCount", { count: 3 }), problem.sentence,
        problem.splitAtLabel()[0], formatNumber(3.5), formatSize(1.5 * 1024 * 1024)];
    useTable("en", { TEXTS, PROBLEMS });
    return said;
}"""
_REPLACE = """async ({ Problem }, own) => {
    const { getText, useOwnTexts } = await import("@folder@/texts.js");
    useOwnTexts(own);
    const problem = new Problem("email");
    const texts = [getText("next"), getText("back"), problem.sentence, ...problem.splitAtLabel()];
    useOwnTexts({});
    return texts;
}"""
_TRANSLATE = """async ({ listServerProblems }, messages) => {
    const { useTable, TEXTS, PROBLEMS } = await import("@folder@/texts.js");
    useTable("de", await import("@folder@/languages/de.js"));
    const errors = messages.map((message, index) => ({ field: String(index), message }));
    const sentences = [...listServerProblems(errors).values()].map(({ sentence }) => sentence);
    useTable("en", { TEXTS, PROBLEMS });
    return sentences;
}"""
_NAMES = re.compile(r"\{(\w+)\}")
_FOLDER = assets._STATIC / "form"
_SPEAK, _REPLACE, _TRANSLATE = (
    source.replace("@folder@", _FOLDER.as_uri()) for source in (_SPEAK, _REPLACE, _TRANSLATE)
)
# A text in code that begins like a sentence or a button.
_LITERAL = re.compile(r"""["`]([A-Z][a-z]+(?: [a-z$][^"`]*)?[a-z.…])["`]""")
# Names of keys and of events, and what the frame around another site's form is called.
_OTHERS = {"ArrowDown", "Content", "Enter", "Escape", "Form", "Image"}
# Problems with what a visitor says in a conversation, which the server words in their language.
_SPOKEN = {"consent", "empty", "long_message", "no_answer", "one_date", "one_number", "one_time"}
_SPOKEN |= {"phone_alone", "score", "zone"}


def _list_variants(text: Any) -> list[str]:
    return [text] if isinstance(text, str) else list(text.values())


def test_variants_of_a_text_have_the_same_placeholders(modules: ModuleRunner) -> None:
    texts, problems = modules.evaluate(_TEXTS, _READ)
    for text in (*texts.values(), *(item["field"] for item in problems.values())):
        names = [set(_NAMES.findall(variant)) for variant in _list_variants(text)]
        assert all(item == names[0] for item in names), text
        if not isinstance(text, str):
            assert "count" in names[0], text
            assert "other" in text


def test_problems_are_whole_sentences_and_name_their_field_in_a_list(
    modules: ModuleRunner,
) -> None:
    _, problems = modules.evaluate(_TEXTS, _READ)
    for texts in problems.values():
        assert all(re.search("[.…]$", text) for text in _list_variants(texts["field"]))
        for text in _list_variants(texts["list"]):
            assert text.count("{label}") == 1


def _list_all(tables: list[dict[str, Any]]) -> dict[str, Any]:
    texts, problems = tables
    return texts | {
        f"{name}.{place}": text for name, both in problems.items() for place, text in both.items()
    }


def test_every_language_has_all_texts(modules: ModuleRunner, subtests: pytest.Subtests) -> None:
    english = _list_all(modules.evaluate(_TEXTS, _READ))
    for language in LANGUAGES[1:]:
        texts = _list_all(modules.evaluate(f"form/languages/{language}.js", _READ))
        with subtests.test(language):
            assert texts.keys() == english.keys()
        for name, text in texts.items():
            with subtests.test(language, name=name):
                if not isinstance(english[name], str):
                    assert sorted(text) == sorted(list_categories(language))
                expected = set(_NAMES.findall(_list_variants(english[name])[-1]))
                for variant in _list_variants(text):
                    assert variant.strip()
                    assert set(_NAMES.findall(variant)) == expected


def test_a_language_is_loaded_where_it_is_needed(modules: ModuleRunner) -> None:
    assert not any("languages" in path for path in assets.list_imports("form/page.js"))
    source = (_FOLDER / "languages.js").read_text(encoding="utf-8")
    for language in LANGUAGES[1:]:
        assert f'{language}: () => import("./languages/{language}.js"),' in source
    texts = modules.evaluate("form/languages.js", _SPEAK, "pl")
    assert texts == ["Dalej", "Są 3 problemy", "Proszę podać datę.", "„", "3,5", "1,5 MB"]


def test_the_chat_understands_the_buttons_of_the_page(
    modules: ModuleRunner, subtests: pytest.Subtests
) -> None:
    for language in LANGUAGES:
        path = _TEXTS if language == ENGLISH else f"form/languages/{language}.js"
        texts, _ = modules.evaluate(path, _READ)
        with subtests.test(language), speak(language):
            assert parse_consent(texts["yes"]) is True
            assert parse_consent(texts["no"]) is False
            assert get_phrases().fold(texts["skip"]).lower() in get_phrases().skip


def test_texts_of_the_page_around_replace_others(modules: ModuleRunner) -> None:
    own = {"next": "Onward", "problemEmail": "No address.", "unknown": "?"}
    assert modules.evaluate(_PROBLEMS, _REPLACE, own) == [
        "Onward",
        "Back",
        "No address.",
        "",
        ": No address.",
    ]


def test_the_page_knows_the_problems_of_the_server(
    modules: ModuleRunner, subtests: pytest.Subtests
) -> None:
    _, problems = modules.evaluate(_TEXTS, _READ)
    for name, text in SERVER_PROBLEMS.items():
        if name in _SPOKEN:
            continue
        with subtests.test(name):
            known = problems[re.sub("_([a-z])", lambda match: match[1].upper(), name)]["list"]
            expected = [f"“{{label}}” {variant}" for variant in _list_variants(text)]
            assert _list_variants(known) == expected


def test_refusals_of_the_server_are_said_in_the_language(modules: ModuleRunner) -> None:
    messages = [
        "is required",
        "must have at most 1,000 characters",
        "must have at most 1 character",
        "must be from -5 to 5",
        "is something new",
    ]
    assert modules.evaluate(_PROBLEMS, _TRANSLATE, messages) == [
        "Diese Angabe ist erforderlich.",
        "Höchstens 1.000 Zeichen sind erlaubt.",
        "Höchstens 1 Zeichen sind erlaubt.",
        "Die Zahl muss zwischen -5 und 5 liegen.",
        "This is something new.",
    ]


def test_texts_are_filled_in(modules: ModuleRunner, subtests: pytest.Subtests) -> None:
    cases: list[tuple[str, dict[str, Any], str]] = [
        ("back", {}, "Back"),
        ("step", {"step": 2, "total": 4}, "Step 2 of 4"),
        ("problemCount", {"count": 1}, "There is 1 problem"),
        ("problemCount", {"count": 1200}, "There are 1,200 problems"),
        # A value is not filled in again.
        ("uploading", {"name": "{name} $& {count}"}, "Uploading {name} $& {count}"),
    ]
    found = modules.evaluate(_TEXTS, _FILL, [[name, values] for name, values, _ in cases])
    for (name, values, text), actual in zip(cases, found, strict=True):
        with subtests.test(name, values=values):
            assert actual == text


def _find_literals(file: Path) -> list[str]:
    code = re.sub(r"//[^\n]*|/\*.*?\*/", "", file.read_text(encoding="utf-8"), flags=re.DOTALL)
    return [text for text in _LITERAL.findall(code) if text not in _OTHERS]


def test_other_modules_have_no_texts_of_their_own() -> None:
    files = [
        file
        for file in _FOLDER.rglob("*.js")
        if file.name not in {"texts.js", "embed.js"} and file.parent.name != "languages"
    ]
    assert {file.name: _find_literals(file) for file in files if _find_literals(file)} == {}
