"""The names by which clients call the models of this instance: with their provider, or without."""

from collections.abc import Collection

from .errors import ModelNotFound


def find(models: Collection[str], name: str) -> str | None:
    return next((model for model in models if name in {model, model.partition("/")[2]}), None)


def build_refusal(models: Collection[str], name: str) -> ModelNotFound:
    """Returns the error for another name, which names the models."""
    choices = " or ".join(dict.fromkeys(models))
    return ModelNotFound(f"The model {name[:100]!r} cannot be used here; use {choices}")
