"""What a type of node provides, and what the engine hands to it.

A node runs within one transaction, together with the record of its outcome: either both happen or
neither. So `run` makes no network call. A short call of a server is `call_server`, which is awaited
before that transaction. What takes longer is accepted as work of another area, and the node waits
for its end.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from datetime import datetime
from typing import Annotated, Any, ClassVar, Generic, Literal, TypeVar

import msgspec
from msgspec import Meta

from app.domain.automation.workflows.definitions import Edge, Node
from app.kit.errors import Problem
from app.services import Services
from db.session import Tx

Id = Annotated[str, Meta(min_length=1, max_length=100)]
C = TypeVar("C", bound=msgspec.Struct)


Kind = Literal["agent", "tool", "table", "channel", "workflow", "user", "decider", "deciding_role"]


class Reference(msgspec.Struct, frozen=True):
    """What a field of a config refers to. A decider is a user who is asked for an approval."""

    kind: Kind
    id: str
    field: str


class ColumnReference(msgspec.Struct, frozen=True):
    """A column of a data table that a config names; `field` is where."""

    table_id: str
    name: str
    field: str


class NodeCall(msgspec.Struct, frozen=True):
    """One attempt of a node. `caller_id` identifies it where it waits for another area. `response`
    is what `call_server` has returned.
    """

    tx: Tx
    services: Services
    tenant_id: str
    execution_id: str
    workflow_id: str
    node: Node
    caller_id: str
    depth: int
    now: datetime
    response: Any = None


class Done(msgspec.Struct, frozen=True):
    output: Any = None
    branch: bool | None = None


class Failed(msgspec.Struct, frozen=True):
    code: str
    message: str
    is_retryable: bool = True


class Wait(msgspec.Struct, frozen=True):
    """The node waits: for `ref_id` of another area, or until a time. It counts as running while
    somebody works for it, and as waiting while nothing happens.
    """

    ref_id: str | None = None
    until: datetime | None = None
    is_running: bool = False


Outcome = Done | Failed | Wait


class NodeType(ABC, Generic[C]):
    """A subclass for each type, in its own file; `registry.py` lists them."""

    name: ClassVar[str]
    description: ClassVar[str]
    config: ClassVar[type[msgspec.Struct]]
    # What `run` gets, where that is not the config with values in the place of its templates.
    rendered: ClassVar[type[msgspec.Struct] | None] = None
    example: ClassVar[dict[str, Any]]
    # Fields that refer to something of the tenant.
    references: ClassVar[dict[str, Kind]] = {}
    # Fields without templates; references are among them.
    literal: ClassVar[frozenset[str]] = frozenset()
    # Fields that are conditions in CEL; `run` gets their results.
    conditions: ClassVar[frozenset[str]] = frozenset()
    # What an author of such a node must be allowed to do.
    permission: ClassVar[str | None] = None
    # True when edges from it may have `when`.
    has_branches: ClassVar[bool] = False
    # False for a node that only computes: a dry run runs it.
    has_effect: ClassVar[bool] = True
    # True when the end of the time that it waits for completes it; else that is a failure.
    ends_by_time: ClassVar[bool] = False
    # True when it waits for a person or a moment, and does nothing meanwhile.
    only_waits: ClassVar[bool] = False
    # True when an attempt waits for another area, so that a node may limit its time.
    has_timeout: ClassVar[bool] = False
    # False when each attempt has the same outcome, so that another one does not help.
    has_retry: ClassVar[bool] = True
    # True when an attempt begins with `call_server`. A dry run ends before it.
    calls_server: ClassVar[bool] = False
    # The longest that an attempt may take unless the node says otherwise.
    timeout_seconds: ClassVar[float | None] = None

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.literal |= cls.references.keys()
        cls.has_timeout |= cls.timeout_seconds is not None

    def find_problems(self, config: dict[str, Any]) -> Iterator[Problem]:
        """Yields what is wrong with the config as a whole; each field was checked before."""
        del config
        return iter(())

    def list_references(self, config: dict[str, Any]) -> Iterator[Reference]:
        """Yields what the config refers to, as far as it is not a template."""
        for field, kind in self.references.items():
            if config.get(field) is not None:
                yield Reference(kind, config[field], field)

    def list_columns(self, config: dict[str, Any]) -> Iterator[ColumnReference]:
        """Yields the columns of data tables that the config names, as far as they are no
        templates. The tables themselves are among the references.
        """
        del config
        return iter(())

    async def lock(self, tx: Tx, tenant_id: str, config: C) -> None:
        """Locks what `run` refers to, before the execution is locked: a deletion locks it first,
        and may then wait for something that waits for the execution.
        """
        del tx, tenant_id, config

    async def call_server(
        self, services: Services, tenant_id: str, caller_id: str, config: C
    ) -> Any:
        """Returns what `run` gets as `call.response`. No connection is held meanwhile. It must end
        within a minute. A worker that is killed before `run` has stored the outcome calls again,
        with the same `caller_id`. Raises ApiError when the node cannot run.
        """
        del services, tenant_id, caller_id, config

    @abstractmethod
    async def run(self, call: NodeCall, config: C) -> Outcome:
        """Raises ApiError when it cannot run; nothing that it wrote is kept then."""

    def finish(self, config: dict[str, Any], edges: list[Edge], output: Any) -> Outcome:
        """Returns the outcome of a node that has waited; `output` is what it has waited for, and
        `edges` lead on from it.
        """
        del config, edges
        return Done(output)

    async def stop(self, call: NodeCall, ref_id: str) -> None:
        """Stops what a node waits for whose execution has ended."""
        del call, ref_id


class NodeTypes(dict[str, NodeType[Any]]):
    """Node types by their names. The engine gets them from the services: a node may start a
    workflow, so that the engine cannot import the registry.
    """
