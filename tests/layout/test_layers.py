"""`layers.toml` declares every import between packages and areas."""

import pytest

from tests.layout import layers

_PACKAGES = {
    "web": ["domain.forms", "kit"],
    "main": ["domain.*", "kit"],
    "domain.*": ["domain", "kit"],
    "domain": ["kit"],
    "kit": [],
}
_AREAS = {"forms": ["files"], "files": []}
_PARTS = {"web", "main", "domain", "kit", "domain.forms", "domain.files"}
_ARROWS = {
    ("web", "domain.forms"): "app.web.page imports app.domain.forms.service",
    ("web", "kit"): "app.web.page imports app.kit.logs",
    ("main", "domain.files"): "app.main imports app.domain.files.controllers",
    ("main", "kit"): "app.main imports app.kit.logs",
    ("domain.forms", "domain.files"): "app.domain.forms.service imports app.domain.files.service",
    ("domain.forms", "domain"): "app.domain.forms.area imports app.domain.area",
    ("domain.files", "kit"): "app.domain.files.service imports app.kit.logs",
    ("domain", "kit"): "app.domain.area imports app.kit.work",
}


def test_every_import_is_declared_and_drawn() -> None:
    assert layers.check() == []


def test_a_declaration_of_all_imports_is_accepted() -> None:
    assert layers.compare(_ARROWS, _PARTS, _PACKAGES, _AREAS) == []


@pytest.mark.parametrize(
    ("arrow", "problem"),
    [
        (("web", "domain.files"), "web does not list domain.files: a imports b"),
        (("domain.files", "domain.forms"), "domain.files does not list domain.forms: a imports b"),
        (("domain", "domain.files"), "domain does not list domain.files: a imports b"),
        (("domain.files", "web"), "domain.files does not list web: a imports b"),
        (("kit", "main"), "kit does not list main: a imports b"),
    ],
)
def test_an_import_that_is_not_declared_is_a_problem(arrow: tuple[str, str], problem: str) -> None:
    arrows = {**_ARROWS, arrow: "a imports b"}
    assert layers.compare(arrows, _PARTS, _PACKAGES, _AREAS) == [problem]


@pytest.mark.parametrize(
    ("arrow", "problem"),
    [
        (("web", "domain.forms"), "web lists domain.forms, but imports nothing of it"),
        (("main", "domain.files"), "main lists domain.*, but imports nothing of it"),
        (("domain.files", "kit"), "domain.* lists kit, but imports nothing of it"),
        (
            ("domain.forms", "domain.files"),
            "domain.forms lists domain.files, but imports nothing of it",
        ),
    ],
)
def test_a_declared_import_that_nothing_needs_is_a_problem(
    arrow: tuple[str, str], problem: str
) -> None:
    arrows = {known: example for known, example in _ARROWS.items() if known != arrow}
    assert layers.compare(arrows, _PARTS, _PACKAGES, _AREAS) == [problem]


def test_each_part_is_declared_once_and_exists() -> None:
    assert layers.compare(_ARROWS, {*_PARTS, "cli", "domain.mail"}, _PACKAGES, _AREAS) == [
        "cli is not declared",
        "domain.mail is not declared",
    ]
    assert layers.compare(_ARROWS, _PARTS, {**_PACKAGES, "db": []}, {**_AREAS, "mail": []}) == [
        "db is declared, but does not exist",
        "domain.mail is declared, but does not exist",
    ]


def test_parts_list_only_parts_below_them() -> None:
    arrows = {**_ARROWS, ("kit", "web"): "", ("domain.files", "domain.forms"): ""}
    packages, areas = {**_PACKAGES, "kit": ["web"]}, {**_AREAS, "files": ["forms"]}
    assert layers.compare(arrows, _PARTS, packages, areas) == [
        "kit lists web, which is not below it",
        "files lists forms, which is not below it",
    ]


def test_arrows_that_follow_from_others_are_not_drawn() -> None:
    assert layers.draw(_PACKAGES).splitlines() == [
        "main, web -> domain.*",
        "domain.* -> domain",
        "domain -> kit",
        "kit",
    ]


@pytest.mark.parametrize(
    ("module", "part"),
    [
        ("app.kit.sandbox.box", "kit"),
        ("app.main", "main"),
        ("app.domain.area", "domain"),
        ("app.domain.forms", "domain.forms"),
        ("app.domain.forms.fields.dates", "domain.forms"),
        ("db.models.forms", "db"),
        ("workers.main", "workers"),
        ("application", None),
        ("litestar.types", None),
    ],
)
def test_a_module_belongs_to_a_part(module: str, part: str | None) -> None:
    assert layers.find_part(module) == part
