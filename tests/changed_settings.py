"""Other settings for an application that runs already: a new one takes most of a second to build.

Only for settings that are read with each request.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec

from app.services import Services


@contextmanager
def changed_settings(services: Services, **changes: Any) -> Iterator[None]:
    before = services.settings
    after = msgspec.structs.replace(before, **changes)
    msgspec.structs.force_setattr(services, "settings", after)
    try:
        yield
    finally:
        msgspec.structs.force_setattr(services, "settings", before)
