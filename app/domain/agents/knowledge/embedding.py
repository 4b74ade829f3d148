"""Embeds texts of documents, questions and clients, and stores what the model was used for."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from app.domain.agents.llm.api import (
    LOCAL,
    EmbeddingInputs,
    Models,
    Target,
    cost_usd,
    load_target,
    provider_of,
)
from app.domain.agents.usage import api as usage
from app.domain.agents.usage.api import ModelCall
from app.jobs.threads import TenantThreads
from app.kit.errors import Invalid, Problem
from app.services import Services

from . import local_embedder
from .embedders import Embedder, OnProgress


class EmbeddedInputs(msgspec.Struct, frozen=True):
    """`vectors` is a float32 matrix with a row per input."""

    vectors: Any
    prompt_tokens: int


async def embed_texts(
    services: Services,
    tenant_id: str,
    agent_id: str,
    model: str,
    texts: list[str],
    on_progress: OnProgress | None = None,
) -> Any:
    """Returns a matrix with a row per text, and stores what a provider's model was used for. Calls
    `on_progress` with the number of texts that are embedded. Raises ModelFailed,
    ModelNotConfigured.
    """
    target = await _load_target(services, tenant_id, model)
    async with _count_usage(services, tenant_id, agent_id, model) as used:
        return await services.get(Embedder).embed(target, texts, used.append, on_progress)


async def embed_inputs(
    services: Services, tenant_id: str, inputs: EmbeddingInputs, dimensions: int | None
) -> EmbeddedInputs:
    """Embeds what a client of the tenant sends, with the model of this instance. A provider gets
    one request at a time, and none after one that failed. Raises Invalid for what the model does
    not take, ModelFailed and ModelNotConfigured.
    """
    model = services.settings.embedding_model
    target = await _load_target(services, tenant_id, model)
    Invalid.check(_list_problems(services, target, inputs, dimensions))
    embedder = services.get(Embedder)
    async with _count_usage(services, tenant_id, None, model) as used:
        if target.model == local_embedder.NAME:
            run = services.get(TenantThreads).run
            vectors, tokens = await run(tenant_id, embedder.local.embed_and_count, inputs)
            used.append(tokens)
        else:
            async with services.outbound_limit.hold(tenant_id):
                vectors = await embedder.embed_hosted(
                    target, inputs, used.append, dimensions=dimensions, concurrency=1
                )
    if dimensions not in {None, vectors.shape[1]}:
        problem = f"{model} has vectors of {vectors.shape[1]} numbers; leave it out"
        raise Invalid.field("dimensions", problem)
    return EmbeddedInputs(vectors, sum(used))


async def _load_target(services: Services, tenant_id: str, model: str) -> Target:
    if provider_of(model) == LOCAL:
        return Target(model, LOCAL)
    async with services.db.tx(tenant_id, autocommit=True) as tx:
        return await load_target(tx, services.keyring, tenant_id, model)


@asynccontextmanager
async def _count_usage(
    services: Services, tenant_id: str, agent_id: str | None, model: str
) -> AsyncIterator[list[int]]:
    """Yields a list for the tokens of each call; stores them also when a later call failed."""
    used: list[int] = []
    try:
        yield used
    finally:
        if used:
            tokens = sum(used)
            call = ModelCall("embedding", model, tokens, 0, await cost_usd(model, tokens, 0))
            await usage.add_call(services.db, tenant_id, agent_id, call)


def _list_problems(
    services: Services, target: Target, inputs: EmbeddingInputs, dimensions: int | None
) -> Iterator[Problem]:
    is_local, models = target.model == local_embedder.NAME, services.get(Models)
    if not is_local:
        models.check_parameters(target, {"dimensions"} if dimensions is not None else ())
    elif dimensions not in {None, local_embedder.DIMENSIONS}:
        yield "dimensions", f"must be {local_embedder.DIMENSIONS} for {target.model}"
    if not isinstance(inputs[0], str) and (is_local or not models.takes_tokens(target)):
        yield "input", f"must be texts: {target.model} takes no tokens"
