from typing import Annotated

from app.domain.area import Event, example


class StorageWarning(Event):
    """A tenant stores 80 or 100 percent of its quota."""

    type = "system.storage.warning"

    percent: Annotated[int, example(80)]
    used_bytes: Annotated[int, example(8589934592)]
    limit_bytes: Annotated[int, example(10737418240)]
    largest: Annotated[str, example("files")]
