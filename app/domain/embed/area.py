from typing import Final

from app.domain.area import Area
from app.domain.embed.events import EmbedKeyCreated, EmbedKeyRevoked

AREA: Final = Area(
    name="embed",
    events=(EmbedKeyCreated, EmbedKeyRevoked),
)
