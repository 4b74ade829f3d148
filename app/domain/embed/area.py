from typing import Final

from app.domain.area import Area
from app.domain.embed.events import EmbedKeyCreated, EmbedKeyRevoked, EmbedKeyUpdated
from db.retention import RetentionRule

AREA: Final = Area(
    name="embed",
    events=(EmbedKeyCreated, EmbedKeyUpdated, EmbedKeyRevoked),
    retention=(RetentionRule("embed_key_usage", "t.day < current_date - 30", order_by="t.day"),),
)
