"""Cells and records of CSV files."""

import pytest

from app.domain.data.tables.csv_reader import CsvFile, decode
from app.domain.data.tables.errors import UnreadableFile
from app.kit import csv_cells


def test_only_texts_that_look_like_formulas_are_escaped() -> None:
    for text, expected in (
        *(("a", "a"), ("=a", "'=a"), ("'=a", "''=a"), ("'a", "'a"), ("", "")),
        *(("\na", "'\na"), ("\uff1da", "'\uff1da"), ("\uff20a", "'\uff20a")),
    ):
        assert csv_cells.escape_formula(text) == expected
        assert csv_cells.unescape_formula(expected) == text


def test_a_file_in_another_encoding_is_read() -> None:
    assert decode("naïve café".encode("utf-16")) == "naïve café"
    assert decode("Größe;Straße\nweiß;süß".encode("cp1252")) == "Größe;Straße\nweiß;süß"


def test_records_are_read_up_to_a_number_and_a_length() -> None:
    file = CsvFile("a,b\n" + "xx,y\n" * 4 + ",\n" * 4, ",")
    counts = [len(file.read(count, chars)) for count, chars in ((1, 99), (9, 6), (9, 1), (9, 4))]
    assert counts == [1, 2, 1, 2]
    assert file.count() == 2


def test_a_record_over_many_lines_is_limited() -> None:
    with pytest.raises(UnreadableFile, match="too long"):
        CsvFile("a\n" + '"x\n",' * 200_000, ",").count()
