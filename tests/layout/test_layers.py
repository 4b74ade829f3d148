"""`layers.toml` declares every import between packages, groups and areas."""

import pytest

from tests.layout import layers

_PACKAGES = {
    "web": ["domain.forms", "kit"],
    "main": ["domain.*", "kit"],
    "domain.*": ["domain", "kit"],
    "domain": ["kit"],
    "kit": [],
}
_GROUPS = {"forms": ["platform"], "platform": []}
_PARTS = {"web", "main", "domain", "kit", "domain.forms", "domain.platform"}
_ARROWS = {
    ("web", "domain.forms"): "app.web.page imports app.domain.forms.definition.service",
    ("web", "kit"): "app.web.page imports app.kit.logs",
    ("main", "domain.platform"): "app.main imports app.domain.platform.files.controllers",
    ("main", "kit"): "app.main imports app.kit.logs",
    (
        "domain.forms",
        "domain.platform",
    ): "app.domain.forms.definition.service imports app.domain.platform.files.service",
    ("domain.forms", "domain"): "app.domain.forms.definition.area imports app.domain.area",
    ("domain.platform", "kit"): "app.domain.platform.files.service imports app.kit.logs",
    ("domain", "kit"): "app.domain.area imports app.jobs.work",
}


def test_every_import_is_declared_and_drawn() -> None:
    assert layers.check() == []


def test_a_declaration_of_all_imports_is_accepted() -> None:
    assert layers.compare(_ARROWS, _PARTS, _PACKAGES, _GROUPS) == []


@pytest.mark.parametrize(
    ("arrow", "problem"),
    [
        (("web", "domain.platform"), "web does not list domain.platform: a imports b"),
        (
            ("domain.platform", "domain.forms"),
            "domain.platform does not list domain.forms: a imports b",
        ),
        (("domain", "domain.platform"), "domain does not list domain.platform: a imports b"),
        (("domain.platform", "web"), "domain.platform does not list web: a imports b"),
        (("kit", "main"), "kit does not list main: a imports b"),
    ],
)
def test_an_import_that_is_not_declared_is_a_problem(arrow: tuple[str, str], problem: str) -> None:
    arrows = {**_ARROWS, arrow: "a imports b"}
    assert layers.compare(arrows, _PARTS, _PACKAGES, _GROUPS) == [problem]


@pytest.mark.parametrize(
    ("arrow", "problem"),
    [
        (("web", "domain.forms"), "web lists domain.forms, but imports nothing of it"),
        (("main", "domain.platform"), "main lists domain.*, but imports nothing of it"),
        (("domain.platform", "kit"), "domain.* lists kit, but imports nothing of it"),
        (
            ("domain.forms", "domain.platform"),
            "domain.forms lists domain.platform, but imports nothing of it",
        ),
    ],
)
def test_a_declared_import_that_nothing_needs_is_a_problem(
    arrow: tuple[str, str], problem: str
) -> None:
    arrows = {known: example for known, example in _ARROWS.items() if known != arrow}
    assert layers.compare(arrows, _PARTS, _PACKAGES, _GROUPS) == [problem]


def test_each_part_is_declared_once_and_exists() -> None:
    assert layers.compare(_ARROWS, {*_PARTS, "cli", "domain.data"}, _PACKAGES, _GROUPS) == [
        "cli is not declared",
        "domain.data is not declared",
    ]
    assert layers.compare(_ARROWS, _PARTS, {**_PACKAGES, "db": []}, {**_GROUPS, "data": []}) == [
        "db is declared, but does not exist",
        "domain.data is declared, but does not exist",
    ]


def test_parts_list_only_parts_below_them() -> None:
    arrows = {**_ARROWS, ("kit", "web"): "", ("domain.platform", "domain.forms"): ""}
    packages, groups = {**_PACKAGES, "kit": ["web"]}, {**_GROUPS, "platform": ["forms"]}
    assert layers.compare(arrows, _PARTS, packages, groups) == [
        "kit lists web, which is not below it",
        "platform lists forms, which is not below it",
    ]


def test_imports_between_areas_of_a_group_are_declared() -> None:
    arrows, declared = {("files", "events"): "a imports b"}, {"files": ["events"], "events": []}
    assert layers.compare_areas(arrows, {"files", "events"}, declared) == []
    assert layers.compare_areas({}, {"files", "mail"}, declared) == [
        "events is declared, but does not exist",
        "files lists events, but imports nothing of it",
        "mail is not declared",
    ]
    upward = {"events": [], "files": ["events"]}
    assert layers.compare_areas(arrows, {"files", "events"}, upward) == [
        "files lists events, which is not below it"
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
        ("app.kit.clock", "kit"),
        ("app.main", "main"),
        ("app.domain.area", "domain"),
        ("app.domain.forms.definition", "domain.forms"),
        ("app.domain.forms.definition.fields.dates", "domain.forms"),
        ("db.models.forms", "db"),
        ("workers.main", "workers"),
        ("application", None),
        ("litestar.types", None),
    ],
)
def test_a_module_belongs_to_a_part(module: str, part: str | None) -> None:
    assert layers.find_part(module) == part
