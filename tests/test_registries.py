"""A type is one file and one row of its registry: no other code compares names of types."""

import ast
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest

from app.domain.agents.sources.kinds.protocol import SourceType
from app.domain.agents.sources.kinds.registry import KINDS as SOURCE_KINDS
from app.domain.agents.tools.auth_configs import AUTH_TYPES, AuthType
from app.domain.agents.tools.configs import TOOL_TYPES, ToolType
from app.domain.agents.tools.executors.registry import EXECUTORS
from app.domain.agents.vault import connection_tests
from app.domain.agents.vault.types import TYPES as CREDENTIAL_TYPES
from app.domain.agents.vault.types import Type as CredentialTypeName
from app.domain.automation.incoming.verification import SCHEMES, SchemeName
from app.domain.automation.subscriptions.actions import ACTIONS, ActionType
from app.domain.automation.workflows import resources
from app.domain.automation.workflows.nodes.protocol import Kind as ReferenceKind
from app.domain.automation.workflows.nodes.registry import NODE_TYPES
from app.domain.forms.definition.fields.registry import FIELD_TYPES
from app.domain.messaging.notifications.providers.protocol import ChannelType
from app.domain.messaging.notifications.providers.registry import PROVIDERS
from app.domain.messaging.notifications.types import TYPES as NOTIFICATION_TYPES
from app.domain.messaging.notifications.types import TypeName

ROOT = Path(__file__).parent.parent


class Registry(msgspec.Struct, frozen=True):
    """`area` is the package of the area, `package` that of the types."""

    area: str
    package: str
    types: Mapping[str, Any]

    @property
    def modules(self) -> set[str]:
        """The modules with the classes of types."""
        classes = (kind if isinstance(kind, type) else type(kind) for kind in self.types.values())
        return {kind.__module__ for kind in classes}


REGISTRIES = {
    "fields": Registry(
        "app.domain.forms.definition", "app.domain.forms.definition.fields", FIELD_TYPES
    ),
    "nodes": Registry(
        "app.domain.automation.workflows", "app.domain.automation.workflows.nodes", NODE_TYPES
    ),
    "sources": Registry(
        "app.domain.agents.sources", "app.domain.agents.sources.kinds", SOURCE_KINDS
    ),
}


def _list_modules(word: str) -> Iterator[tuple[str, ast.Module]]:
    """Yields the modules whose text has this word."""
    for folder in ("app", "workers"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            text = path.read_text(encoding="utf-8")
            module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
            if word in text or word in module:
                yield module, ast.parse(text)


def _list_imports(tree: ast.Module) -> list[str]:
    names = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return names


def _is_within(module: str, package: str) -> bool:
    return module == package or module.startswith(f"{package}.")


class User(msgspec.Struct, frozen=True):
    module: str
    tree: ast.Module
    imports: list[str]


def _list_users(registry: Registry) -> Iterator[User]:
    """Yields the modules that can have a type of the registry in hand, without its package: those
    of its area, and all that import from that.
    """
    for module, tree in _list_modules(registry.area.rpartition(".")[2]):
        imports = _list_imports(tree)
        is_user = _is_within(module, registry.area) or any(
            _is_within(name, registry.area) for name in imports
        )
        if is_user and not _is_within(module, registry.package):
            yield User(module, tree, imports)


def _find_names(node: ast.AST, names: Mapping[str, Any]) -> Iterator[str]:
    for item in ast.walk(node):
        if isinstance(item, ast.Constant) and isinstance(item.value, str) and item.value in names:
            yield item.value


def _find_comparisons(tree: ast.Module, names: Mapping[str, Any]) -> Iterator[str]:
    """Yields the names of types that are compared: by an operator, by `match`, or by a list or a
    constant mapping of nothing but such names.
    """
    for node in ast.walk(tree):
        match node:
            case ast.Compare() | ast.MatchValue():
                yield from _find_names(node, names)
            case ast.Set(elts=items) | ast.Tuple(elts=items) | ast.List(elts=items):
                yield from _find_if_all(items, names)
    for node in tree.body:
        match node:
            case ast.Assign(value=ast.Dict(keys=keys)) | ast.AnnAssign(value=ast.Dict(keys=keys)):
                yield from _find_if_all(keys, names)


def _find_if_all(items: Sequence[ast.expr | None], names: Mapping[str, Any]) -> set[str]:
    found = [
        item.value
        for item in items
        if isinstance(item, ast.Constant) and isinstance(item.value, str) and item.value in names
    ]
    return set(found) if len(found) == len(items) else set()


@pytest.mark.parametrize("registry", REGISTRIES.values(), ids=REGISTRIES)
def test_only_a_registry_knows_the_names_and_imports_the_classes_of_its_types(
    registry: Registry,
) -> None:
    """What depends on the type is a property of it, so that a new type has it as well."""
    compared, imported = [], []
    for user in _list_users(registry):
        names = set(_find_comparisons(user.tree, registry.types))
        compared += [(user.module, name) for name in names]
        imported += [(user.module, name) for name in user.imports if name in registry.modules]
    assert compared == []
    assert imported == []


def test_the_names_that_the_api_takes_are_those_of_the_registries(
    subtests: pytest.Subtests,
) -> None:
    """Where a `Literal` stands beside a registry, so that a type checker knows the names."""
    channel_types = {provider.channel_type for provider in PROVIDERS.values()}
    for names, registered in (
        (ActionType, set(ACTIONS)),
        (AuthType, {"none", *AUTH_TYPES}),
        (ChannelType, channel_types),
        (CredentialTypeName, set(CREDENTIAL_TYPES)),
        # Tables are looked up with their columns.
        (ReferenceKind, {"table", *resources._FINDERS}),
        (SchemeName, set(SCHEMES)),
        (SourceType, set(SOURCE_KINDS)),
        (ToolType, set(TOOL_TYPES)),
        (TypeName, set(NOTIFICATION_TYPES)),
    ):
        with subtests.test(names=names):
            assert set(get_args(names)) == registered
    assert EXECUTORS.keys() == TOOL_TYPES.keys()
    assert connection_tests._TESTS.keys() == CREDENTIAL_TYPES.keys()
