from typing import Final

from app.domain.area import Area

AREA: Final = Area(name="console")
