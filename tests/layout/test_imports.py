"""Which modules of a package or area others may import, and who imports which library."""

import ast
import re
import sys
from importlib.metadata import packages_distributions

from app.kit.optional import FEATURES
from tests.layout.sources import (
    PACKAGES,
    ROOT,
    find_area,
    find_files,
    find_loaded,
    is_within,
    list_areas,
    list_imports,
    read_file,
    read_modules,
)

# The modules of an area that others may import.
PUBLIC_MODULES = {"api", "errors", "events", "schemas", "upload_schemas", "admission"}
# They list the areas and their routes.
LISTS = {"app.areas", "app.main"}
# Libraries that read complex formats. Files come from strangers, so each is read in a process that
# has no rights, by a script or a module that only a script loads.
PARSERS = {
    *("PIL", "av", "bz2", "docx", "lxml", "lzma", "pickle", "plistlib", "pypdfium2"),
    *("semantic_text_splitter", "sqlite3", "tarfile", "xml", "zipfile"),
}


def test_every_library_is_in_the_lock_that_users_install() -> None:
    """Tests have more packages; a start on a machine without them is only in the long run."""
    optional = (f"requirements-{feature.group}.lock" for feature in FEATURES)
    locks = [ROOT / "requirements.lock", *(ROOT / name for name in optional)]
    text = "\n".join(lock.read_text(encoding="utf-8") for lock in locks)
    locked = {_normal_name(name) for name in re.findall(r"^([\w.-]+)==", text, re.MULTILINE)}
    imported = {other.partition(".")[0] for _, other in list_imports()}
    distributions = packages_distributions()
    libraries = imported - {*PACKAGES, *sys.stdlib_module_names}
    assert len(libraries) > 30
    missing = {
        name
        for name in libraries
        if not {_normal_name(item) for item in distributions.get(name, [])} & locked
    }
    assert missing == set()


def _normal_name(package: str) -> str:
    return re.sub(r"[-_.]+", "-", package).lower()


def test_nothing_imports_tests() -> None:
    assert [module for module, other in list_imports() if is_within(other, "tests")] == []


def test_only_the_command_line_imports_the_worker() -> None:
    importers = {
        (module, other)
        for module, other in list_imports()
        if is_within(other, "workers") and not is_within(module, "workers")
    }
    assert importers == {("app.cli", "workers.main")}


def test_others_import_only_public_modules_of_an_area() -> None:
    wrong = []
    for module, other in list_imports():
        area = find_area(other)
        if area is None or find_area(module) == area or module in LISTS:
            continue
        name = other.removeprefix(area.package).lstrip(".").partition(".")[0]
        wrong += [(module, other)] if name not in PUBLIC_MODULES else []
    assert wrong == []


def test_lists_of_areas_import_declarations_routes_and_public_modules() -> None:
    wrong = [
        (module, other)
        for module, other in list_imports()
        if module in LISTS
        and find_area(other) is not None
        and other.rpartition(".")[2] not in {*PUBLIC_MODULES, "area"}
        and not other.endswith("controllers")
    ]
    assert wrong == []


def test_modules_of_one_folder_import_each_other_by_short_names() -> None:
    """So that a reader sees at once what belongs to the area. Scripts have no package."""
    wrong = [
        (path.relative_to(ROOT), node.module)
        for path in find_files("app/domain")
        if find_area(".".join(path.relative_to(ROOT).parts[:-1])) and not path.match("*_child.py")
        for node in read_file(path).imports
        if isinstance(node, ast.ImportFrom)
        and node.level == 0
        and is_within(node.module or "", ".".join(path.relative_to(ROOT).parts[:-1]))
    ]
    assert wrong == []


def test_an_interface_is_a_list_without_code() -> None:
    wrong = [
        area
        for area in list_areas()
        if (module := read_modules().get(f"{area.package}.api")) is not None
        and re.search(r"^(async )?(def|class) ", module.text, re.MULTILINE)
    ]
    assert wrong == []


def test_an_interface_lists_only_what_others_use() -> None:
    unused = []
    for area in list_areas():
        path = ROOT.joinpath(*area.package.split("."), "api.py")
        if not path.exists():
            continue
        users = [
            module.text
            for name, module in read_modules().items()
            if f"{area.package}.api" in module.imports and not is_within(name, area.package)
        ]
        words = set(re.findall(r"\w+", "\n".join(users)))
        names = {
            alias.asname or alias.name for node in read_file(path).imports for alias in node.names
        }
        unused += [(area.package, name) for name in names - words]
    assert unused == []


def test_what_workers_load_imports_no_web_framework() -> None:
    loaded = find_loaded("app.areas") | find_loaded("workers.main")
    wrong = [
        name
        for name in loaded
        if any(is_within(other, "litestar") for other in read_modules()[name].imports)
    ]
    assert wrong == []


def test_parsers_are_imported_by_scripts_of_child_processes_alone() -> None:
    wrong = [
        (module, other)
        for module, other in list_imports()
        if other.partition(".")[0] in PARSERS
        and not module.endswith("_child")
        and not is_within(module, "app.domain.agents.knowledge.readers")
    ]
    assert wrong == []
    loaded = find_loaded("app.areas") | find_loaded("workers.main")
    assert [name for name in loaded if is_within(name, "app.domain.agents.knowledge.readers")] == []


def test_the_worker_imports_only_the_interface_of_events() -> None:
    """It finds the jobs of all areas in their declarations."""
    areas = {
        other
        for module, other in list_imports()
        if is_within(module, "workers") and find_area(other) is not None
    }
    assert areas == {"app.domain.platform.events.api"}


def test_every_area_has_a_folder_of_tests() -> None:
    folders = {area: ROOT / "tests" / area.group / area.name for area in list_areas()}
    assert [area for area, folder in folders.items() if not list(folder.glob("test_*.py"))] == []
