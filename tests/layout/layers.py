"""Compares the imports between packages, groups and areas with `layers.toml`, and draws them."""

import tomllib
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tests.layout.sources import PACKAGES, ROOT, find_area, list_imports, read_modules

DECLARATION = ROOT / "layers.toml"
DOCUMENT = ROOT / "CONTRIBUTING.md"
COMMAND = ".venv/bin/python scripts/check_layers.py --write"
# The groups of areas in `app/domain`; `domain` has the modules beside them.
ANY_GROUP = "domain.*"

_START = "<!-- layers: generated from layers.toml -->\n"
_END = "<!-- end of layers -->\n"
_WIDTH = 96

# What each part imports.
Arrows = Mapping[str, Sequence[str]]
# An import for each arrow between two parts.
Imports = Mapping[tuple[str, str], str]


class Declaration(NamedTuple):
    packages: Arrows
    groups: Arrows
    # By group.
    areas: Mapping[str, Arrows]


def read_declaration() -> Declaration:
    return Declaration(**tomllib.loads(DECLARATION.read_text(encoding="utf-8")))


def find_part(module: str) -> str | None:
    """Returns the part of Parley that a module belongs to, as `layers.toml` calls it. The package
    `app` itself is none: it has the version alone.
    """
    names = module.split(".")
    if names[0] not in PACKAGES or module == "app":
        return None
    area = find_area(module)
    if area is not None:
        return f"domain.{area.group}"
    return names[1] if names[0] == "app" else names[0]


def find_arrows() -> dict[tuple[str, str], str]:
    arrows = {}
    for module, other in list_imports():
        source, target = find_part(module), find_part(other)
        if source and target and source != target:
            arrows[source, target] = f"{module} imports {other}"
    return arrows


def find_area_arrows(group: str) -> dict[tuple[str, str], str]:
    """Returns the imports between areas of one group."""
    arrows = {}
    for module, other in list_imports():
        source, target = find_area(module), find_area(other)
        if source and target and source != target and source.group == target.group == group:
            arrows[source.name, target.name] = f"{module} imports {other}"
    return arrows


def find_parts() -> set[str]:
    """Returns the parts with a module that is not empty."""
    return {
        part
        for name, module in read_modules().items()
        if module.text and (part := find_part(name)) is not None
    }


def find_areas(group: str) -> set[str]:
    areas = (find_area(name) for name in read_modules())
    return {area.name for area in areas if area is not None and area.group == group}


def compare(arrows: Imports, parts: set[str], packages: Arrows, groups: Arrows) -> list[str]:
    """Returns all differences between the imports and what is declared."""
    declared = {**packages, **{f"domain.{group}": groups[group] for group in groups}}
    declared = {
        part: [f"domain.{other}" if other in groups else other for other in others]
        for part, others in declared.items()
    }
    problems = _compare_arrows(arrows, declared)
    names = set(declared) - {ANY_GROUP}
    problems += [f"{part} is not declared" for part in parts - names]
    problems += [f"{part} is declared, but does not exist" for part in names - parts]
    return sorted(problems) + _find_upward(packages) + _find_upward(groups)


def compare_areas(arrows: Imports, areas: set[str], declared: Arrows) -> list[str]:
    problems = _compare_arrows(arrows, declared)
    problems += [f"{area} is not declared" for area in areas - set(declared)]
    problems += [f"{area} is declared, but does not exist" for area in set(declared) - areas]
    return sorted(problems) + _find_upward(declared)


def _compare_arrows(arrows: Imports, declaration: Arrows) -> list[str]:
    declared = {(part, other) for part, others in declaration.items() for other in others}
    used, problems = set[tuple[str, str]](), []
    for arrow, example in sorted(arrows.items()):
        allowing = [item for item in (arrow, _generalize(arrow)) if item in declared]
        used |= set(allowing[:1])
        if not allowing:
            problems.append(f"{arrow[0]} does not list {arrow[1]}: {example}")
    problems += [
        f"{part} lists {other}, but imports nothing of it" for part, other in declared - used
    ]
    return problems


def _generalize(arrow: tuple[str, str]) -> tuple[str, str]:
    """Returns the arrow from or to any group that allows an arrow from or to one of them. An arrow
    between two groups has none.
    """
    general = (_collapse(arrow[0]), _collapse(arrow[1]))
    return arrow if general == (ANY_GROUP, ANY_GROUP) else general


def _find_upward(arrows: Arrows) -> list[str]:
    """Each part lists only parts below it, so that none import each other, even through others."""
    order = {part: position for position, part in enumerate(arrows)}
    return [
        f"{part} lists {other}, which is not below it"
        for part, others in arrows.items()
        for other in map(_collapse, others)
        if order.get(other, -1) <= order[part]
    ]


def _collapse(part: str) -> str:
    return ANY_GROUP if part.startswith("domain.") else part


def draw(arrows: Arrows) -> str:
    """Returns the layers: a part stands above all that it imports. What those parts import too is
    left out, so that few arrows remain.
    """
    graph = {part: {_collapse(other) for other in others} for part, others in arrows.items()}
    reached, levels = dict[str, set[str]](), dict[str, int]()
    layers = dict[int, dict[str, list[str]]]()
    for part in reversed(graph):
        others = graph[part]
        reached[part] = others.union(*(reached[other] for other in others))
        levels[part] = max((levels[other] + 1 for other in others), default=0)
        direct = ", ".join(sorted(others.difference(*(reached[other] for other in others))))
        layers.setdefault(levels[part], {}).setdefault(direct, []).append(part)
    return "\n".join(_draw_layer(layers[level]) for level in sorted(layers, reverse=True))


def _draw_layer(parts_by_imports: Mapping[str, list[str]]) -> str:
    groups = [
        ", ".join(sorted(parts)) + (f" -> {imports}" if imports else "")
        for imports, parts in parts_by_imports.items()
    ]
    lines = list[str]()
    for group in sorted(groups):
        if lines and len(lines[-1]) + len(group) <= _WIDTH:
            lines[-1] += f" | {group}"
        else:
            lines.append(group)
    return "\n  ".join(lines)


def draw_document(document: str) -> str:
    """Returns the text of CONTRIBUTING.md with the layers as they are declared."""
    packages, groups, areas = read_declaration()
    before, rest = document.split(_START)
    after = rest.split(_END)[1]
    rows = [f"| `{group}` | {', '.join(reversed(list(areas[group])))} |\n" for group in groups]
    drawing = (
        f"```\n{draw(packages)}\n```\n\nThe groups, which are `{ANY_GROUP}` above:\n\n"
        f"```\n{draw(groups)}\n```\n\n| group | its areas, in the order in which they import each "
        f"other |\n|---|---|\n{''.join(rows)}"
    )
    return f"{before}{_START}{drawing}{_END}{after}"


def check() -> list[str]:
    """Returns what is wrong with imports, declaration and drawing."""
    packages, groups, areas = read_declaration()
    problems = compare(find_arrows(), find_parts(), packages, groups)
    for group in groups:
        found = find_area_arrows(group), find_areas(group), areas.get(group, {})
        problems += [f"{group}: {problem}" for problem in compare_areas(*found)]
    # The drawing of a wrong declaration would say nothing.
    if not problems:
        document = DOCUMENT.read_text(encoding="utf-8")
        if draw_document(document) != document:
            problems.append(f"CONTRIBUTING.md draws other layers: run `{COMMAND}`")
    return problems
