from typing import Annotated, Literal

from app.domain.area import Event, example

_AGENT = "agt_01k9x3m7e8c0v2q4r6t8w0y2a4"
_SOURCE = "src_01k9x3m7e8c0v2q4r6t8w0y2a4"
_OWNER = "usr_01k9x3m7e8c0v2q4r6t8w0y2a4"


class SourceSynced(Event):
    """A source was synced, and documents of an agent changed."""

    type = "system.source.synced"

    agent_id: Annotated[str, example(_AGENT)]
    source_id: Annotated[str, example(_SOURCE)]
    name: Annotated[str, example("Help pages")]
    added: Annotated[int, example(2)]
    changed: Annotated[int, example(5)]
    removed: Annotated[int, example(1)]


class SourceChangesFound(Event):
    """A source has changes that wait for a review. `owner_id` names who created it."""

    type = "system.source.changes_found"

    agent_id: Annotated[str, example(_AGENT)]
    source_id: Annotated[str, example(_SOURCE)]
    name: Annotated[str, example("Help pages")]
    added: Annotated[int, example(2)]
    changed: Annotated[int, example(5)]
    removed: Annotated[int, example(1)]
    reason: Annotated[Literal["review", "mass_removal"], example("review")]
    owner_id: Annotated[str | None, example(_OWNER)] = None


class SourceFailed(Event):
    """A source could not be read several times in a row. `owner_id` names who created it."""

    type = "system.source.failed"

    agent_id: Annotated[str, example(_AGENT)]
    source_id: Annotated[str, example(_SOURCE)]
    name: Annotated[str, example("Help pages")]
    error: Annotated[str, example("https://example.com/sitemap.xml answered with status 500")]
    failed_count: Annotated[int, example(3)]
    owner_id: Annotated[str | None, example(_OWNER)] = None
