"""Compares the imports between packages and areas with `layers.toml`, and draws the layers."""

import tomllib
from collections.abc import Mapping, Sequence

from tests.layout.sources import PACKAGES, ROOT, find_area, list_imports, read_modules

DECLARATION = ROOT / "layers.toml"
DOCUMENT = ROOT / "CONTRIBUTING.md"
COMMAND = ".venv/bin/python scripts/check_layers.py --write"
# The modules directly in `app/domain`, and the areas beside them.
ANY_AREA = "domain.*"

_START = "<!-- layers: generated from layers.toml -->\n"
_END = "<!-- end of layers -->\n"
_WIDTH = 96

# What each part imports.
Arrows = Mapping[str, Sequence[str]]


def read_declaration() -> tuple[Arrows, Arrows]:
    """Returns the arrows of packages and those of areas."""
    tables = tomllib.loads(DECLARATION.read_text(encoding="utf-8"))
    return tables["packages"], tables["areas"]


def find_part(module: str) -> str | None:
    """Returns the part of Parley that a module belongs to, as `layers.toml` calls it."""
    names = module.split(".")
    if names[0] not in PACKAGES:
        return None
    area = find_area(module)
    if area is not None:
        return f"domain.{area}"
    return names[1] if names[0] == "app" and len(names) > 1 else names[0]


def find_arrows() -> dict[tuple[str, str], str]:
    """Returns an import for each arrow between two parts."""
    arrows = {}
    for module, other in list_imports():
        source, target = find_part(module), find_part(other)
        if source and target and source != target:
            arrows[source, target] = f"{module} imports {other}"
    return arrows


def find_parts() -> set[str]:
    """Returns the parts with a module that is not empty."""
    return {
        part
        for name, module in read_modules().items()
        if module.text and (part := find_part(name)) is not None
    }


def _declared_arrows(packages: Arrows, areas: Arrows) -> set[tuple[str, str]]:
    of_packages = {(part, other) for part, others in packages.items() for other in others}
    of_areas = {
        (f"domain.{area}", f"domain.{other}") for area, others in areas.items() for other in others
    }
    return of_packages | of_areas


def _generalize(arrow: tuple[str, str]) -> tuple[str, str]:
    """Returns the arrow from or to any area that allows an arrow from or to one of them. An arrow
    between two areas has none.
    """
    general = (_collapse(arrow[0]), _collapse(arrow[1]))
    return arrow if general == (ANY_AREA, ANY_AREA) else general


def compare(
    arrows: Mapping[tuple[str, str], str], parts: set[str], packages: Arrows, areas: Arrows
) -> list[str]:
    """Returns all differences between the imports and what is declared."""
    declared, used, problems = _declared_arrows(packages, areas), set[tuple[str, str]](), []
    for arrow, example in sorted(arrows.items()):
        allowing = [item for item in (arrow, _generalize(arrow)) if item in declared]
        used |= set(allowing[:1])
        if not allowing:
            problems.append(f"{arrow[0]} does not list {arrow[1]}: {example}")
    problems += [
        f"{part} lists {other}, but imports nothing of it" for part, other in declared - used
    ]
    names = {*packages, *(f"domain.{area}" for area in areas)} - {ANY_AREA}
    problems += [f"{part} is not declared" for part in parts - names]
    problems += [f"{part} is declared, but does not exist" for part in names - parts]
    return sorted(problems) + _find_upward(packages) + _find_upward(areas)


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
    return ANY_AREA if part.startswith("domain.") else part


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
    packages, areas = read_declaration()
    before, rest = document.split(_START)
    after = rest.split(_END)[1]
    drawing = (
        f"```\n{draw(packages)}\n```\n\nThe areas, which are `{ANY_AREA}` above:\n\n"
        f"```\n{draw(areas)}\n```\n"
    )
    return f"{before}{_START}{drawing}{_END}{after}"


def check() -> list[str]:
    """Returns what is wrong with imports, declaration and drawing."""
    problems = compare(find_arrows(), find_parts(), *read_declaration())
    # The drawing of a wrong declaration would say nothing.
    if not problems:
        document = DOCUMENT.read_text(encoding="utf-8")
        if draw_document(document) != document:
            problems.append(f"CONTRIBUTING.md draws other layers: run `{COMMAND}`")
    return problems
