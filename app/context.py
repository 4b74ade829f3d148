"""The request context that handlers pass to service functions."""

import msgspec

from app.crypto.keyring import Keyring
from app.net.egress import Guard
from app.security.principal import Principal
from app.services import Services
from app.settings import Settings
from db.session import Tx


class RequestContext(msgspec.Struct, frozen=True):
    tx: Tx
    services: Services
    principal: Principal
    # The client's network address.
    address: str = "unknown"

    @property
    def keyring(self) -> Keyring:
        return self.services.keyring

    @property
    def guard(self) -> Guard:
        return self.services.egress.guard

    @property
    def settings(self) -> Settings:
        return self.services.settings
