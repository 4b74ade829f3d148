"""Which modules of a package or area others may import, and who imports which library."""

import re
import sys
from importlib.metadata import packages_distributions

from tests.layout.sources import (
    PACKAGES,
    ROOT,
    find_area,
    find_loaded,
    is_within,
    list_areas,
    list_imports,
    read_modules,
)

# The modules of an area that other areas may import.
PUBLIC_MODULES = {"service", "errors", "events", "schemas"}
# Libraries that read complex formats. Files come from strangers, so each is read in a process that
# has no rights, by a script or a module that only a script loads.
PARSERS = {
    *("PIL", "av", "bz2", "docx", "lxml", "lzma", "pickle", "plistlib", "pypdfium2"),
    *("semantic_text_splitter", "sqlite3", "tarfile", "xml", "zipfile"),
}


def test_every_library_is_in_the_lock_that_users_install() -> None:
    """Tests have more packages; a start on a machine without them is only in the long run."""
    locks = [ROOT / "requirements.lock", *ROOT.glob("requirements-speech.lock")]
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


def test_an_area_imports_only_public_modules_of_other_areas() -> None:
    wrong = []
    for module, other in list_imports():
        area, other_area = find_area(module), find_area(other)
        if area and other_area and area != other_area:
            name = (*other.split("."), "")[3]
            wrong += [(module, other)] if name not in PUBLIC_MODULES else []
    assert wrong == []


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
        and not is_within(module, "app.domain.knowledge.readers")
    ]
    assert wrong == []
    loaded = find_loaded("app.areas") | find_loaded("workers.main")
    assert [name for name in loaded if is_within(name, "app.domain.knowledge.readers")] == []


def test_the_runner_imports_no_area() -> None:
    imports = read_modules()["workers.runner"].imports
    assert [other for other in imports if is_within(other, "app.domain")] == []


def test_every_area_has_a_service_and_a_folder_of_tests() -> None:
    wrong = [
        area
        for area in list_areas()
        if f"app.domain.{area}.service" not in read_modules()
        or not list((ROOT / "tests" / area).glob("test_*.py"))
    ]
    assert wrong == []
