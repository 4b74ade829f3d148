"""Finds the operations of an OpenAPI document, and what a tool needs to call them."""

import re
from typing import Any, Final
from urllib.parse import urlsplit

from .loading import Refused
from .references import Document, SchemaWriter, text_of

METHODS: Final = ("get", "post", "put", "patch", "delete")
_OTHER_METHODS: Final = ("head", "options", "trace")
# Of a listed operation, and of all that are listed.
_PARTS_OF_ONE: Final = 400
_PARTS_OF_ALL: Final = 30_000
_MAX_PARAMETERS: Final = 100
_MAX_NAME: Final = 64
_MAX_PATH: Final = 2000
_NOT_NAME: Final = re.compile(r"[^A-Za-z0-9_]+")
_PLACEHOLDER: Final = re.compile(r"\{([^{}/]+)\}")
_VARIABLE: Final = re.compile(r"\{([^{}]+)\}")
# The client sets them.
_OWN_HEADERS: Final = frozenset({"accept", "content-type", "authorization"})
_HEADER_NAME: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}\Z")


class _NotImportable(Exception):
    pass


class Operations:
    """All operations, each with a name that is unique in the document."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._budget = _PARTS_OF_ALL
        self._names: set[str] = set()
        self._numbers: dict[str, int] = {}
        self.items = list(self._find())

    def _find(self) -> Any:
        paths = self._document.root.get("paths")
        if paths is not None and not isinstance(paths, dict):
            raise Refused("is not an OpenAPI document: `paths` is not an object")
        for path, value in (paths or {}).items():
            item = self._document.follow(value)
            if not path.startswith("/") or not isinstance(item, dict):
                continue
            for method in (*METHODS, *_OTHER_METHODS):
                operation = item.get(method)
                if isinstance(operation, dict):
                    yield {"path": path, "method": method, "item": item, "operation": operation} | {
                        "name": self._name(operation.get("operationId"), method, path)
                    }

    def _name(self, operation_id: Any, method: str, path: str) -> str:
        text = operation_id if isinstance(operation_id, str) else f"{method} {path}"
        name = base = _NOT_NAME.sub("_", text[:_MAX_PATH]).strip("_")[:_MAX_NAME] or method
        # Goes on where the last operation with this name has ended.
        while name in self._names:
            self._numbers[base] = self._numbers.get(base, 1) + 1
            name = f"{base[: _MAX_NAME - 8]}_{self._numbers[base]}"
        self._names.add(name)
        return name

    def describe(self, found: dict[str, Any], budget: int | None = None) -> dict[str, Any]:
        """`schema` has the parts of a run's input: params, headers and body."""
        operation = found["operation"]
        described: dict[str, Any] = {
            "id": found["name"],
            "operation_id": text_of(operation.get("operationId"), 200) or None,
            "method": found["method"].upper(),
            "path": found["path"][:_MAX_PATH],
            "summary": text_of(operation.get("summary") or operation.get("description")),
            "is_deprecated": operation.get("deprecated") is True,
            "security": self._list_security(operation),
            "schema": None,
            "reason": None,
        }
        budget = min(_PARTS_OF_ONE, max(self._budget, 0)) if budget is None else budget
        writer = SchemaWriter(self._document, budget)
        try:
            described["schema"] = self._write_input(found, writer)
        except (_NotImportable, Refused) as error:
            reason = str(error)
            described["reason"] = reason if isinstance(error, _NotImportable) else f"it {reason}"
        self._budget -= budget - max(writer.left, 0)
        return described

    def _write_input(self, found: dict[str, Any], writer: SchemaWriter) -> dict[str, Any]:
        if found["method"] not in METHODS:
            raise _NotImportable(f"the method {found['method'].upper()} is not supported")
        _check_path(found["path"])
        for part in (found["operation"], found["item"]):
            if part.get("servers") not in (None, []):
                raise _NotImportable("it has a server of its own")
        parts = self._write_parameters(found, writer)
        body, is_needed = self._write_body(found["operation"], writer)
        properties: dict[str, Any] = dict(parts)
        required = [name for name, schema in parts.items() if schema.get("required")]
        if body is not None:
            properties["body"] = body
            required += ["body"] if is_needed else []
        return {"properties": properties, "required": required}

    def _write_parameters(
        self, found: dict[str, Any], writer: SchemaWriter
    ) -> dict[str, dict[str, Any]]:
        by_place = self._list_parameters(found)
        params, headers = _Part(), _Part()
        for (place, name), parameter in by_place.items():
            is_required = parameter.get("required") is True or place == "path"
            if place in {"path", "query"}:
                params.add(name, self._write_value(parameter, writer), is_required=is_required)
            elif place == "header" and name.lower() not in _OWN_HEADERS:
                if not _HEADER_NAME.match(name):
                    raise _NotImportable("it has a header whose name is not valid")
                headers.add(name, {"type": "string"}, is_required=is_required)
            elif place == "cookie" and is_required:
                raise _NotImportable("it needs a cookie")
        return {
            name: part.schema()
            for name, part in (("params", params), ("headers", headers))
            if part.properties
        }

    def _list_parameters(self, found: dict[str, Any]) -> dict[tuple[str, str], dict[str, Any]]:
        """Returns them by place and name; those of the operation replace those of the path."""
        by_place: dict[tuple[str, str], dict[str, Any]] = {}
        for part in (found["item"], found["operation"]):
            parameters = part.get("parameters")
            for value in parameters if isinstance(parameters, list) else []:
                parameter = self._document.follow(value)
                if isinstance(parameter, dict) and isinstance(parameter.get("name"), str):
                    by_place[str(parameter.get("in")), parameter["name"]] = parameter
        for name in _PLACEHOLDER.findall(found["path"]):
            by_place.setdefault(("path", name), {"name": name, "required": True})
        if len(by_place) > _MAX_PARAMETERS:
            raise _NotImportable(f"it has more than {_MAX_PARAMETERS} parameters")
        return by_place

    def _write_value(self, parameter: dict[str, Any], writer: SchemaWriter) -> dict[str, Any]:
        if "schema" not in parameter and isinstance(parameter.get("content"), dict):
            raise _NotImportable("it has a parameter that is encoded as JSON")
        schema = writer.write(parameter.get("schema", {"type": "string"}))
        kinds = schema.get("type", "string")
        if "object" in ([kinds] if isinstance(kinds, str) else kinds):
            raise _NotImportable("it has a parameter that is an object")
        if parameter.get("explode") is False and kinds == "array":
            schema = {"type": "string", "description": "Values with commas between them"}
        if text := text_of(parameter.get("description")):
            schema["description"] = text
        return dict(schema)

    def _write_body(
        self, operation: dict[str, Any], writer: SchemaWriter
    ) -> tuple[dict[str, Any] | None, bool]:
        body = self._document.follow(operation.get("requestBody"))
        if not isinstance(body, dict):
            return None, False
        content = body.get("content")
        is_needed = body.get("required") is True
        for name, media in (content if isinstance(content, dict) else {}).items():
            kind = name.partition(";")[0].strip().lower()
            if kind in {"application/json", "*/*", "application/*"} or kind.endswith("+json"):
                schema = media.get("schema", {}) if isinstance(media, dict) else {}
                return writer.write(schema), is_needed
        if is_needed:
            raise _NotImportable("its body is not JSON")
        return None, False

    def _list_security(self, operation: dict[str, Any]) -> list[str]:
        """Returns the names of the schemes of the first alternative."""
        security = operation.get("security", self._document.root.get("security"))
        if not isinstance(security, list) or not security or not isinstance(security[0], dict):
            return []
        return [text_of(name, 100) for name in list(security[0])[:20]]


class _Part:
    def __init__(self) -> None:
        self.properties: dict[str, Any] = {}
        self._required: list[str] = []

    def add(self, name: str, schema: dict[str, Any], *, is_required: bool) -> None:
        if name in self.properties:
            raise _NotImportable(f"it has two parameters named {text_of(name, 50)}")
        self.properties[name] = schema
        if is_required:
            self._required.append(name)

    def schema(self) -> dict[str, Any]:
        schema: dict[str, Any] = {"type": "object", "properties": self.properties}
        return schema | ({"required": self._required} if self._required else {})


def _check_path(path: str) -> None:
    has_dots = any(part in {".", ".."} for part in path.partition("?")[0].split("/"))
    has_others = "#" in path or any(ord(char) <= 32 or char == "\\" for char in path)  # noqa: PLR2004
    if has_dots or has_others or len(path) > _MAX_PATH:
        raise _NotImportable("its path cannot be used")


def find_base_url(document: Document) -> str | None:
    """Returns the address of the first server, with the defaults of its variables."""
    servers = document.root.get("servers")
    server = servers[0] if isinstance(servers, list) and servers else None
    if not isinstance(server, dict) or not isinstance(server.get("url"), str):
        return None
    variables = server.get("variables")

    def fill(match: re.Match[str]) -> str:
        variable = variables.get(match.group(1)) if isinstance(variables, dict) else None
        default = variable.get("default") if isinstance(variable, dict) else None
        return str(default) if isinstance(default, (str, int)) else match.group(0)

    url = _VARIABLE.sub(fill, server["url"])[:_MAX_PATH]
    try:
        is_whole = urlsplit(url).scheme in {"http", "https"}
    except ValueError:
        return None
    return url if is_whole or url.startswith("/") else None


def list_security_schemes(document: Document) -> list[dict[str, Any]]:
    components = document.root.get("components")
    schemes = components.get("securitySchemes") if isinstance(components, dict) else None
    listed = []
    for name, value in list(schemes.items() if isinstance(schemes, dict) else ())[:20]:
        scheme = document.follow(value)
        if isinstance(scheme, dict):
            listed.append({"name": text_of(name, 100), **_describe_scheme(scheme)})
    return listed


def _describe_scheme(scheme: dict[str, Any]) -> dict[str, Any]:
    kind, http = text_of(scheme.get("type"), 30), text_of(scheme.get("scheme"), 30).lower()
    auth_type, place, parameter = None, None, None
    if kind == "http" and http in {"bearer", "basic"}:
        auth_type = http
    elif kind == "apiKey" and scheme.get("in") in {"header", "query"}:
        name = text_of(scheme.get("name"), 100)
        if _HEADER_NAME.match(name):
            auth_type, place, parameter = "api_key", scheme["in"], name
    elif kind == "oauth2":
        auth_type = "oauth2"
    return {
        "type": kind,
        "auth_type": auth_type,
        "api_key_location": place,
        "api_key_header": parameter,
        "description": text_of(scheme.get("description")),
    }
