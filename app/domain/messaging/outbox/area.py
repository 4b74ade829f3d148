from typing import Final

from app.domain.area import Area

from .egress import OutboxEgress

AREA: Final = Area(name="outbox", shared=lambda services: (OutboxEgress(services.egress.guard),))
