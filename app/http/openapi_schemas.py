"""JSON Schemas of the structs that routes receive and return.

Litestar's own lose bounds inside unions, lists and dictionaries, and name generic structs after
modules. msgspec's lose the order of literals and the format of times without a zone.
"""

from collections.abc import Callable
from datetime import date, datetime
from inspect import cleandoc
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin

import msgspec
from litestar.datastructures import UploadFile
from msgspec import Meta, UnsetType

Schema = dict[str, Any]

BINARY: Final[Schema] = {
    "type": "string",
    "format": "binary",
    "contentMediaType": "application/octet-stream",
}
_PLAIN: Final[dict[Any, Schema]] = {
    Any: {},
    NoneType: {"type": "null"},
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": "number"},
    str: {"type": "string"},
    date: {"type": "string", "format": "date"},
    datetime: {"type": "string", "format": "date-time"},
    UploadFile: BINARY,
}
_NUMBER_BOUNDS: Final = {
    "ge": "minimum",
    "gt": "exclusiveMinimum",
    "le": "maximum",
    "lt": "exclusiveMaximum",
    "multiple_of": "multipleOf",
}
# What the attributes of `Meta` are called, by the type that they limit.
_BOUNDS: Final = {
    "integer": _NUMBER_BOUNDS,
    "number": _NUMBER_BOUNDS,
    "string": {"min_length": "minLength", "max_length": "maxLength", "pattern": "pattern"},
    "array": {"min_length": "minItems", "max_length": "maxItems"},
    "object": {"min_length": "minProperties", "max_length": "maxProperties"},
}
# How a generic struct is called, after the struct that it holds.
_SHAPES: Final = {
    "Data": "Data",
    "Paged": "Page",
    "Flat": "FlatPage",
    "Keyset": "KeysetPage",
    "OperationResult": "Result",
}
_PAGE: Final = {
    "pagination": {"page": 1, "per_page": 20, "total": 1, "total_pages": 1},
    "total": 1,
    "page": 1,
    "per_page": 20,
    "next_cursor": None,
}


class SchemaBuilder:
    """Describes types. The structs among them become `components`, which schemas refer to."""

    def __init__(self) -> None:
        self.components: dict[str, Schema] = {}
        self._structs: dict[str, Any] = {}
        self._describers: dict[Any, Callable[..., Schema]] = {
            Annotated: self._describe_annotated,
            Literal: _describe_literal,
            Union: self._describe_union,
            UnionType: self._describe_union,
            list: self._describe_list,
            dict: self._describe_dict,
        }

    def describe(self, annotation: Any) -> Schema:
        origin = get_origin(annotation)
        if origin in self._describers:
            return self._describers[origin](*get_args(annotation))
        if _is_struct(origin or annotation):
            return self._refer_to(annotation)
        if annotation in _PLAIN:
            return dict(_PLAIN[annotation])
        raise TypeError(f"there is no JSON Schema for {annotation}")

    def _describe_annotated(self, annotation: Any, *notes: Any) -> Schema:
        schema = self.describe(annotation)
        for note in notes:
            if isinstance(note, Meta):
                _add_bounds(schema, note)
                if note.description is not None:
                    schema["description"] = note.description
        return schema

    def _describe_union(self, *annotations: Any) -> Schema:
        branches: list[Schema] = []
        for annotation in annotations:
            if annotation is not UnsetType:
                schema = self.describe(annotation)
                branches += schema["anyOf"] if schema.keys() == {"anyOf"} else [schema]
        if {} in branches:
            return {}
        return branches[0] if len(branches) == 1 else {"anyOf": branches}

    def _describe_list(self, item: Any) -> Schema:
        return {"type": "array", "items": self.describe(item)}

    def _describe_dict(self, key: Any, value: Any) -> Schema:
        schema: Schema = {"type": "object", "additionalProperties": self.describe(value)}
        if (names := self.describe(key)) != _PLAIN[str]:
            schema["propertyNames"] = names
        return schema

    def _refer_to(self, struct: Any) -> Schema:
        name = name_struct(struct)
        other = self._structs.setdefault(name, struct)
        if other != struct:
            raise RuntimeError(f"{struct} and {other} have the same name in the API document")
        if name not in self.components:
            # Before its fields, which may refer to it.
            self.components[name] = {}
            self.components[name] = self._describe_struct(struct)
        return {"$ref": f"#/components/schemas/{name}"}

    def _describe_struct(self, struct: Any) -> Schema:
        is_generic = get_origin(struct) is not None
        fields = msgspec.structs.fields(struct)
        schema: Schema = {"type": "object"}
        if not is_generic and struct.__dict__.get("__doc__"):
            schema["description"] = cleandoc(struct.__doc__)
        config = (get_origin(struct) or struct).__struct_config__
        tag = {config.tag_field: _describe_literal(config.tag)} if config.tag_field else {}
        described = {field.encode_name: self._describe_field(field) for field in fields}
        schema["properties"] = tag | described
        required = [*tag, *(field.encode_name for field in fields if field.required)]
        if required:
            schema["required"] = required
        example = self._example_of_shape(schema) if is_generic else getattr(struct, "example", None)
        if example is not None:
            schema["example"] = example
        return schema

    def _describe_field(self, field: msgspec.structs.FieldInfo) -> Schema:
        schema = self.describe(field.type)
        if isinstance(field.default, bool | int | float | str):
            schema["default"] = field.default
        return schema

    def _example_of_shape(self, schema: Schema) -> Schema | None:
        """Returns the example of a struct that holds others in `data`."""
        data = schema["properties"].get("data", {})
        reference: str = data.get("items", data).get("$ref", "")
        example = self.components.get(reference.rpartition("/")[2], {}).get("example")
        if example is None:
            return None
        page = {name: value for name, value in _PAGE.items() if name in schema["properties"]}
        return {"data": [example] if "items" in data else example, **page}


def name_struct(struct: Any) -> str:
    """Returns `ToolPage` for `Paged[ToolView]`."""
    shape = get_origin(struct)
    if shape is None:
        return str(struct.__name__)
    (held,) = get_args(struct)
    if get_origin(held) is list:
        return name_struct(*get_args(held)).removesuffix("View") + "List"
    return name_struct(held).removesuffix("View") + _SHAPES[shape.__name__]


def _is_struct(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


def _describe_literal(*values: Any) -> Schema:
    (kind,) = {type(value) for value in values}
    schema = dict(_PLAIN[kind])
    return schema | ({"const": values[0]} if len(values) == 1 else {"enum": list(values)})


def _add_bounds(schema: Schema, meta: Meta) -> None:
    """In a union, the bounds are those of the branches that can have them."""
    for branch in schema.get("anyOf", [schema]):
        for attribute, keyword in _BOUNDS.get(branch.get("type"), {}).items():
            if (bound := getattr(meta, attribute)) is not None:
                branch[keyword] = bound
