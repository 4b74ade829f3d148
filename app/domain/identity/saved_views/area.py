from typing import Final

from app.domain.area import Area
from db.storage_quota import UncountedTable

AREA: Final = Area(
    name="saved_views",
    tables=(UncountedTable("saved_views", "small, at most 100 of a user"),),
)
