from functools import partial
from typing import Annotated, Literal

from litestar import Controller, Response, delete, get, post
from litestar.params import JSONBody, QueryParameter

from app.domain.agents import brain as brains
from app.domain.chat import conversations, jobs, stream, turn
from app.domain.chat.begin import Question, begin, resume
from app.domain.chat.keep import WebKeeper
from app.domain.chat.schemas import (
    AgentStatus,
    ChatReply,
    ChatRequest,
    ConversationView,
    JobAccepted,
    JobView,
    LogEntry,
    MessageView,
)
from app.domain.chat.turn import Turn, Who
from app.domain.usage import service as usage
from app.domain.usage.service import AgentStats, Period
from app.http.given import HttpRequest, Id, Page, Parts, Principal, Tx
from app.http.paging import MOMENT, Paged, Search, Sort, moment
from app.http.sse import MEDIA_TYPE, EventStream
from app.parts import parts_of
from app.security.principal import principal_of

Kind = Literal["message", "tool_call", "token_usage", "training"]


class ChatController(Controller):
    path = "/api/v1/agents/{agent_id:str}"
    tags = ["Chat"]  # noqa: RUF012  # litestar's own type

    @post(
        "/chat",
        summary="Chat with an agent",
        needs="agents:chat",
        cost="chat",
        status_code=200,
        idempotent="apart",
        errors=(502,),
    )
    async def chat(
        self, request: HttpRequest, agent_id: Id, data: JSONBody[ChatRequest]
    ) -> ChatReply:
        """One turn, answered whole. Without `conversation_id` a new conversation begins; with one
        that is being answered already: 409 `conversation_busy`.
        """
        parts = parts_of(request)
        begun = await _begun(parts, principal_of(request), agent_id, data)
        return await turn.reply_of(
            turn.run(parts, begun, WebKeeper(parts, begun, live=False), live=False)
        )

    @post(
        "/chat/stream",
        summary="Chat with an agent, streamed",
        needs="agents:chat",
        cost="chat",
        status_code=200,
        idempotent=False,
        media_type=MEDIA_TYPE,
    )
    async def chat_stream(
        self, request: HttpRequest, agent_id: Id, data: JSONBody[ChatRequest]
    ) -> Response[bytes]:
        """Server-sent events: `message_start`, `content_delta`, `tool_use`, `tool_result`,
        `message_stop`, or `error` with what went wrong. Who stops reading ends the turn; what was
        said until then stays in the conversation as `interrupted`.
        """
        parts = parts_of(request)
        begun = await _begun(parts, principal_of(request), agent_id, data)
        steps = turn.run(parts, begun, WebKeeper(parts, begun, live=True), live=True)
        return EventStream(stream.spoken(steps))

    @post(
        "/chat/async",
        summary="Chat with an agent later",
        needs="agents:chat",
        cost="chat",
        status_code=202,
    )
    async def chat_async(
        self, tx: Tx, parts: Parts, principal: Principal, agent_id: Id, data: JSONBody[ChatRequest]
    ) -> JobAccepted:
        """The answer is worked out in the background, and survives whatever is restarted. Ask for
        it at `…/chat/jobs/:job_id`, or wait for the event `agent.chat.completed`.
        """
        return await jobs.accept(parts, tx, principal, agent_id, data)

    @get("/chat/jobs/{job_id:str}", summary="Get an asynchronous chat")
    async def get_job(
        self,
        parts: Parts,
        principal: Principal,
        agent_id: Id,
        job_id: Id,
        wait: Annotated[
            int, QueryParameter(ge=0, le=30, description="Wait this long for the job to end")
        ] = 0,
    ) -> JobView:
        return await jobs.status(parts, principal, agent_id, job_id, wait)

    @delete("/chat/jobs/{job_id:str}", summary="Cancel an asynchronous chat", status_code=200)
    async def cancel_job(
        self, tx: Tx, parts: Parts, principal: Principal, agent_id: Id, job_id: Id
    ) -> JobView:
        return await jobs.cancel(parts, tx, principal, agent_id, job_id)

    @get("/status", summary="Get an agent's status", needs="agents:read")
    async def get_status(self, parts: Parts, principal: Principal, agent_id: Id) -> AgentStatus:
        """`is_online`: the agent is not archived, and its model can be asked."""
        return await conversations.agent_status(parts, principal, agent_id)

    @get("/stats", summary="Get an agent's figures", needs="agents:read")
    async def get_stats(
        self,
        tx: Tx,
        agent_id: Id,
        period: Annotated[Period, QueryParameter(description="How far back")] = "all_time",
    ) -> AgentStats:
        return await usage.agent_stats(tx, agent_id, period)

    @get("/logs", summary="List an agent's log", needs="conversations:read")
    async def list_logs(
        self,
        tx: Tx,
        page_in: Page,
        agent_id: Id,
        kind: Annotated[
            Kind | None, QueryParameter(name="type", description="Only these records")
        ] = None,
        conversation_id: Annotated[str | None, QueryParameter(max_length=64)] = None,
        since: Annotated[str | None, QueryParameter(name="from", schema_extra=MOMENT)] = None,
        until: Annotated[str | None, QueryParameter(name="to", schema_extra=MOMENT)] = None,
    ) -> Paged[LogEntry]:
        """The newest first: messages, tool calls and token usage of all conversations, as far as
        the agent's log settings let them be logged.
        """
        filters = (kind, conversation_id, moment("from", since), moment("to", until))
        return await conversations.log_of(tx, agent_id, page_in, filters)

    @get("/conversations", summary="List an agent's conversations")
    async def list_conversations(
        self,
        tx: Tx,
        principal: Principal,
        page_in: Page,
        agent_id: Id,
        status: Annotated[
            Literal["active", "ended"] | None, QueryParameter(description="Only these")
        ] = None,
        search: Search = None,
        sort: Sort = None,
    ) -> Paged[ConversationView]:
        """One's own; with conversations:read everybody's. `search` looks in titles. Sort by
        created_at, last_message_at or message_count; the latest first unless told otherwise.
        """
        return await conversations.page_of(
            tx, principal, agent_id, page_in, status=status, search=search, sort=sort
        )


async def _begun(parts: Parts, principal: Principal, agent_id: str, data: ChatRequest) -> Turn:
    scope = principal.scope
    question = Question(
        who=Who(principal.user_id),
        source="console",
        text=data.message,
        conversation_id=data.conversation_id,
        context=data.context,
    )
    if data.conversation_id is not None:
        together = partial(resume, parts, scope, agent_id)
        begun = await parts.batches.join(("resume", scope, agent_id), question, together)
        if begun is not None:
            return begun
    async with parts.db.tx(scope, read_only=True) as tx:
        brain = await brains.load(tx, parts.keyring, agent_id)
        await parts.models.check(brain.target)
        return await begin(tx, brain, question)


class ConversationController(Controller):
    path = "/api/v1/conversations/{conversation_id:str}"
    tags = ["Conversations"]  # noqa: RUF012

    @get(summary="Get a conversation")
    async def get_conversation(
        self, tx: Tx, principal: Principal, conversation_id: Id
    ) -> ConversationView:
        """One's own; another's with conversations:read."""
        return await conversations.get(tx, principal, conversation_id)

    @get("/messages", summary="List a conversation's messages")
    async def list_messages(
        self, tx: Tx, principal: Principal, page_in: Page, conversation_id: Id
    ) -> Paged[MessageView]:
        """The oldest first."""
        return await conversations.messages(tx, principal, conversation_id, page_in)

    @post("/end", summary="End a conversation", status_code=200)
    async def end_conversation(
        self, tx: Tx, principal: Principal, conversation_id: Id
    ) -> ConversationView:
        """Writing in it again opens it again."""
        return await conversations.end(tx, principal, conversation_id)

    @delete(summary="Delete a conversation")
    async def delete_conversation(self, tx: Tx, principal: Principal, conversation_id: Id) -> None:
        await conversations.delete(tx, principal, conversation_id)
