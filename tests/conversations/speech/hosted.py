"""Web processes whose speech and embedding models are those of a scripted provider."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec

from app.main import create_app
from tests.stores import Stores
from tests.world import World

PROVIDER = "hearing"


@asynccontextmanager
async def serve_hosted(
    stores: Stores, ear: str, mouth: str, embedder: str = "local/wordllama"
) -> AsyncIterator[World]:
    """Yields a process that hears with one model of the provider and speaks with another."""
    settings = msgspec.structs.replace(
        stores.settings,
        transcription_model=f"{PROVIDER}/{ear}",
        speech_model=f"{PROVIDER}/{mouth}",
        embedding_model=embedder,
    )
    world = World(create_app(settings))
    yield world
    await world.services.close()
