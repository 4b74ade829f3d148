"""How long files and functions may be."""

from tests.layout.sources import find_files, read_file

MAX_FILE_LINES = 400
MAX_FUNCTION_LINES = 40
_FILES = find_files("app", "db", "scripts", "tests", "workers")


def test_no_file_is_longer_than_400_lines() -> None:
    lengths = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in _FILES}
    assert [path for path, length in lengths.items() if length > MAX_FILE_LINES] == []


def test_no_function_is_longer_than_40_lines() -> None:
    wrong = [
        (path, name, length)
        for path in _FILES
        # Alembic puts a migration into one function.
        if "migrations" not in path.parts
        for name, length in read_file(path).functions
        if length > MAX_FUNCTION_LINES
    ]
    assert wrong == []
