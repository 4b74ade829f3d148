from typing import Final

from app.domain.area import Area
from db.retention import RetentionRule
from db.storage_quota import UncountedTable

from .events import EmbedKeyCreated, EmbedKeyRevoked, EmbedKeyUpdated

AREA: Final = Area(
    name="embed",
    events=(EmbedKeyCreated, EmbedKeyUpdated, EmbedKeyRevoked),
    retention=(RetentionRule("embed_key_usage", "t.day < current_date - 30", order_by="t.day"),),
    tables=(
        UncountedTable("embed_keys", "at most 100 of an agent"),
        UncountedTable("embed_key_usage", "two numbers, deleted after 30 days"),
    ),
)
