"""How an agent searches its documents. The agent stores what differs from the defaults."""

from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import Meta


class RetrievalSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The defaults are the settings of an agent that has none."""

    example: ClassVar[dict[str, Any]] = {"max_passages": 5}

    max_passages: Annotated[
        int, Meta(ge=1, le=20, description="The most passages that a turn quotes to the model")
    ] = 5
