"""What the registry of the models makes of their columns."""

from datetime import datetime

import pytest
from advanced_alchemy.types import DateTimeUTC
from sqlalchemy import DateTime
from sqlalchemy.engine.default import DefaultDialect

from db.base import Base
from db.models import User


def test_every_time_is_stored_with_its_time_zone(subtests: pytest.Subtests) -> None:
    columns = [column for table in Base.metadata.sorted_tables for column in table.columns]
    times = [column for column in columns if column.type.python_type is datetime]
    assert len(times) > 100
    for column in times:
        with subtests.test(column=str(column)):
            assert isinstance(column.type, DateTimeUTC)
            assert isinstance(column.type.impl_instance, DateTime)
            assert column.type.impl_instance.timezone


def test_a_time_without_a_time_zone_is_refused() -> None:
    kind = User.__table__.c.last_login_at.type
    assert isinstance(kind, DateTimeUTC)
    with pytest.raises(TypeError, match="tzinfo is required"):
        kind.process_bind_param(datetime(2026, 1, 1), DefaultDialect())  # noqa: DTZ001
