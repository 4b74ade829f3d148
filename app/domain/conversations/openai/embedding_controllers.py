from litestar import Controller, post
from litestar.params import JSONBody
from litestar.response import Stream

from app.domain.identity.tenants import api as tenants
from app.http.dependencies import HttpRequest, Principal, Services

from . import embeddings
from .embedding_schemas import EmbeddingList, EmbeddingRequest

# Texts, or lists of tokens, which take more.
MAX_BODY_BYTES = 4 * 1024 * 1024


class EmbeddingController(Controller):
    path = "/v1/embeddings"
    tags = ["OpenAI-compatible"]

    @post(
        summary="Embed texts in OpenAI's wire format",
        needs="agents:chat",
        cost="execute",
        status_code=200,
        idempotent=False,
        open_body=True,
        stops_when_gone=True,
        errors=(400, 502),
        request_max_body_size=MAX_BODY_BYTES,
    )
    async def create_embeddings(
        self,
        request: HttpRequest,
        services: Services,
        principal: Principal,
        data: JSONBody[EmbeddingRequest],
    ) -> EmbeddingList:
        """`model` is the embedding model of this instance, `local/wordllama` unless its operator
        chose another one; any other is 404 `model_not_found`, whose message names it. A provider's
        model is called with the tenant's key. The vectors have the length 1.
        """
        inputs = embeddings.read_inputs(services, data)
        tenants.keep_charges(request)
        parts = await embeddings.embed(services, principal.home, data, inputs)
        return Stream(parts, media_type="application/json")  # type: ignore[return-value]  # as above
