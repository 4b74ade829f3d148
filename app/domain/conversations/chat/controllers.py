from functools import partial
from typing import Annotated, Literal

from litestar import Controller, Response, delete, get, post
from litestar.params import JSONBody, MultipartBody, QueryParameter

from app.context import RequestContext
from app.domain.agents.usage import api as usage
from app.domain.agents.usage.schemas import AgentStats, Period
from app.http import refunds
from app.http.dependencies import Context, HttpRequest, Id, Page, Principal, Services, Tx
from app.http.disconnect import while_awaited, while_connected
from app.http.paging import From, Search, Sort, To, parse_time
from app.http.sse import MEDIA_TYPE, EventStream
from app.kit.paging import Paged

from . import attachments, chat_jobs, conversations, feedback, messages, service, turn_contexts
from .attachments import ATTACHMENT
from .message_queries import MessageRange, Part, TextRange
from .queries import ConversationFilter, LogFilter
from .schemas import (
    AgentStatus,
    AttachmentView,
    ChatReply,
    ChatRequest,
    ConversationView,
    JobAccepted,
    JobView,
    LogEntry,
    MessagePage,
    RatedMessage,
    RateMessage,
    Source,
    TextSlice,
)
from .seen_schemas import TurnContext
from .service import AgentReference
from .sse_encoding import EVENTS, encode_stream
from .start_turn import Question
from .turn import Speaker
from .upload_schemas import AttachmentUpload

LogEntryType = Literal["message", "tool_call", "token_usage", "training"]


class ChatController(Controller):
    path = "/api/v1/agents/{agent_id:str}"
    tags = ["Chat"]

    @post(
        "/chat",
        summary="Chat with an agent",
        needs="agents:chat",
        cost="chat",
        status_code=200,
        idempotent="long_running",
        errors=(400, 502),
    )
    async def chat(
        self, request: HttpRequest, context: Context, agent_id: Id, data: JSONBody[ChatRequest]
    ) -> ChatReply:
        """One turn, answered whole. Without `conversation_id` a new conversation begins; with one
        that is being answered already: 409 `conversation_busy`. A client that disconnects ends the
        turn, unless the request has an `Idempotency-Key`.
        """
        agent, question = _question(context, agent_id, data)
        connection = while_awaited(request)
        return await service.answer(context.services, agent, question, connection)

    @post(
        "/chat/stream",
        summary="Chat with an agent, streamed",
        needs="agents:chat",
        cost="chat",
        status_code=200,
        idempotent=False,
        errors=(400, 502),
        media_type=MEDIA_TYPE,
        events=EVENTS,
    )
    async def chat_stream(
        self, request: HttpRequest, context: Context, agent_id: Id, data: JSONBody[ChatRequest]
    ) -> Response[bytes]:
        """The response begins when the model begins to answer, or the turn waits for it: a failure
        before that has a status of its own. Server-sent events: `message_start`, `content_delta`,
        `tool_use`, `tool_result`, `message_stop`, or `error` with what went wrong. A client that
        stops reading ends the turn; what was said until then stays in the conversation as
        `interrupted`. While the turn waits for the local model, `queue` has its `position`: 1 is
        next, and at 0 its turn has come. Until that model says its first word, `progress` has the
        `seconds` for which it has worked.
        """
        agent, question = _question(context, agent_id, data)
        connection = while_connected(request)
        events = await service.stream(context.services, agent, question, connection)
        shows_costs = context.principal.may("usage:read")
        return EventStream(encode_stream(events, shows_costs=shows_costs))

    @post(
        "/chat/async",
        summary="Chat with an agent later",
        needs="agents:chat",
        cost="chat",
        status_code=202,
    )
    async def chat_async(
        self, context: Context, agent_id: Id, data: JSONBody[ChatRequest]
    ) -> JobAccepted:
        """The answer is prepared in the background and survives every restart. Get it from
        `…/chat/jobs/:job_id`, or wait for the event `agent.chat.completed`.
        """
        return await chat_jobs.accept(context, agent_id, data)

    @post(
        "/attachments",
        summary="Attach a file",
        needs="agents:chat",
        stores=True,
        **ATTACHMENT,
    )
    async def attach_file(
        self,
        request: HttpRequest,
        services: Services,
        principal: Principal,
        agent_id: Id,
        data: MultipartBody[AttachmentUpload],
    ) -> AttachmentView:
        """Reads the text of a file, for `attachments` of your messages to this agent. The first
        100,000 characters are stored, the file itself is not. A file without text, or one that
        cannot be read: 422 with the reason. While too many files are read: 503.
        """
        keep_charges = partial(refunds.keep_charges, request.scope["state"])
        return await attachments.add_for_user(
            services, principal, agent_id, data.file, keep_charges
        )

    @get("/chat/jobs/{job_id:str}", summary="Get an asynchronous chat", signed_in=True)
    async def get_chat_job(
        self,
        services: Services,
        principal: Principal,
        agent_id: Id,
        job_id: Id,
        wait: Annotated[
            int, QueryParameter(ge=0, le=30, description="Seconds to wait for the job to finish")
        ] = 0,
    ) -> JobView:
        return await chat_jobs.get(services, principal, agent_id, job_id, wait)

    @delete(
        "/chat/jobs/{job_id:str}",
        summary="Cancel an asynchronous chat",
        signed_in=True,
        status_code=200,
    )
    async def cancel_chat_job(self, context: Context, agent_id: Id, job_id: Id) -> JobView:
        return await chat_jobs.cancel(context, agent_id, job_id)

    @get("/status", summary="Get an agent's status", needs="agents:read")
    async def get_agent_status(
        self, services: Services, principal: Principal, agent_id: Id
    ) -> AgentStatus:
        """`is_online`: the agent is not archived, and its model can be asked."""
        return await conversations.get_agent_status(services, principal, agent_id)

    @get("/stats", summary="Get an agent's statistics", needs="usage:read")
    async def get_agent_stats(
        self,
        tx: Tx,
        agent_id: Id,
        period: Annotated[Period, QueryParameter(description="How far back")] = "all_time",
    ) -> AgentStats:
        return await usage.get_agent_stats(tx, agent_id, period)

    @get("/logs", summary="List an agent's log", needs="conversations:read")
    async def list_chat_logs(
        self,
        tx: Tx,
        page_in: Page,
        agent_id: Id,
        kind: Annotated[
            LogEntryType | None,
            QueryParameter(name="type", description="Only entries of this type"),
        ] = None,
        conversation_id: Annotated[str | None, QueryParameter(max_length=64)] = None,
        since: From = None,
        until: To = None,
    ) -> Paged[LogEntry]:
        """The newest first: messages, tool calls and token usage of all conversations, as far as
        the agent's log settings let them be logged.
        """
        filters = LogFilter(
            kind, conversation_id, parse_time("from", since), parse_time("to", until)
        )
        return await conversations.list_log(tx, agent_id, page_in, filters)

    @get("/conversations", summary="List an agent's conversations", signed_in=True)
    async def list_conversations(
        self,
        tx: Tx,
        principal: Principal,
        page_in: Page,
        agent_id: Id,
        status: Annotated[
            Literal["active", "ended"] | None,
            QueryParameter(description="Only conversations in this state"),
        ] = None,
        source: Annotated[
            Source | None,
            QueryParameter(description="Only conversations from here; without it, no previews"),
        ] = None,
        search: Search = None,
        sort: Sort = None,
    ) -> Paged[ConversationView]:
        """Your own conversations; with conversations:read, everybody's. Previews are listed with
        `source=preview` alone. `search` looks in titles. Sort by created_at, last_message_at or
        message_count; the latest first by default.
        """
        filters = ConversationFilter(status, search, sort, source)
        return await conversations.list_page(tx, principal, agent_id, page_in, filters)


def _question(
    context: RequestContext, agent_id: str, data: ChatRequest
) -> tuple[AgentReference, Question]:
    question = Question(
        speaker=Speaker(context.principal.user_id),
        source="console",
        text=data.message,
        conversation_id=data.conversation_id,
        replaces=data.replaces,
        attachments=data.attachments,
        context=data.context,
    )
    return AgentReference(context.principal.scope, agent_id), question


MessageId = Annotated[
    str | None, QueryParameter(max_length=64, description="The id of a message of the conversation")
]
MessageLimit = Annotated[
    int | None,
    QueryParameter(
        ge=1, le=100, description="At most so many messages; 50 with `before` or `after` alone"
    ),
]
TextPart = Annotated[
    Part, QueryParameter(description="The content, or what a tool received or returned")
]
CallId = Annotated[
    str | None,
    QueryParameter(
        max_length=300, description="The id in `tool_calls`, for the input or the output"
    ),
]
Offset = Annotated[
    int, QueryParameter(ge=0, le=1_000_000_000, description="Characters before the slice")
]
Length = Annotated[
    int, QueryParameter(ge=1, le=100_000, description="Characters of the slice, at most")
]


class ConversationController(Controller):
    path = "/api/v1/conversations/{conversation_id:str}"
    tags = ["Conversations"]
    opt = {"signed_in": True}

    @get(summary="Get a conversation")
    async def get_conversation(
        self, tx: Tx, principal: Principal, conversation_id: Id
    ) -> ConversationView:
        """Your own conversation; another user's needs conversations:read."""
        return await conversations.get(tx, principal, conversation_id)

    @get("/messages", summary="List a conversation's messages")
    async def list_messages(
        self,
        tx: Tx,
        principal: Principal,
        page_in: Page,
        conversation_id: Id,
        before: MessageId = None,
        after: MessageId = None,
        limit: MessageLimit = None,
    ) -> MessagePage:
        """The oldest first. `before`, `after` and `limit` read a long conversation from its end, in
        place of `page` and `per_page`: `limit` alone reads the last messages, `before` the last
        ones before a message, and `after` the first ones after it; `has_more` says whether there
        are more. Of a message whose texts are longer than 100 kB together, such a page has the
        beginnings: 2,000 characters of the content, of inputs and of outputs, with their whole
        lengths as `content_chars`, `input_chars` and `output_chars`. Pages by number have all texts
        whole.
        """
        if before is None and after is None and limit is None:
            return await conversations.list_messages(tx, principal, conversation_id, page_in)
        wanted = MessageRange(before, after, limit or 50)
        return await messages.list_range(tx, principal, conversation_id, wanted)

    @get("/messages/{message_id:str}/text", summary="Get a text of a message")
    async def get_message_text(
        self,
        tx: Tx,
        principal: Principal,
        conversation_id: Id,
        message_id: Id,
        part: TextPart = "content",
        call_id: CallId = None,
        offset: Offset = 0,
        length: Length = 100_000,
    ) -> TextSlice:
        """In slices of up to 100,000 characters: the content of a message, or the input or output
        of a call of a tool. A value that is not a text is JSON.
        """
        wanted = TextRange(part, call_id, offset, length)
        return await messages.get_text(tx, principal, conversation_id, message_id, wanted)

    @get("/messages/{message_id:str}/context", summary="Get what the model of an answer saw")
    async def get_message_context(
        self, tx: Tx, principal: Principal, conversation_id: Id, message_id: Id
    ) -> TurnContext:
        """The system message as it was sent, passages, tools, parameters, tokens and times of the
        turn, for everybody who may read the conversation. The prompt, the model and the rest of the
        agent's configuration are null for callers without agents:write, the cost for those without
        usage:read.
        """
        return await turn_contexts.find(tx, principal, conversation_id, message_id)

    @post(
        "/messages/{message_id:str}/feedback",
        summary="Rate an answer",
        status_code=200,
        errors=(409,),
    )
    async def rate_message(
        self,
        tx: Tx,
        principal: Principal,
        conversation_id: Id,
        message_id: Id,
        data: JSONBody[RateMessage],
    ) -> RatedMessage:
        """For everybody who may read the conversation, each with one rating per answer. A message
        of the user, or of a preview: 409 `message_not_ratable`.
        """
        return await feedback.rate(tx, principal, conversation_id, message_id, data)

    @post("/end", summary="End a conversation", status_code=200)
    async def end_conversation(
        self, tx: Tx, principal: Principal, conversation_id: Id
    ) -> ConversationView:
        """Writing in it again opens it again. While the agent is answering in it, or a job waits
        to: 409 `conversation_busy`; try again when the answer is there, or cancel the job.
        """
        return await conversations.end(tx, principal, conversation_id)

    @delete(summary="Delete a conversation")
    async def delete_conversation(self, tx: Tx, principal: Principal, conversation_id: Id) -> None:
        await conversations.delete(tx, principal, conversation_id)
