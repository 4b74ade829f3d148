"""Builds the web application: routes, dependencies, error handling and the gate."""

# Before Litestar, which would import advanced-alchemy with all optional libraries that it finds.
import db.base  # noqa: F401

# isort: split
import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from litestar import Litestar, Request, Response
from litestar.di import Provide

from app import __version__, container
from app import settings as configuration
from app.areas import AREAS
from app.demo import service as demo
from app.domain.agents.definition.controllers import (
    AgentBatchController,
    AgentController,
    SubAgentController,
)
from app.domain.agents.definition.draft_controllers import AgentDraftController
from app.domain.agents.knowledge.controllers import KnowledgeController
from app.domain.agents.knowledge.evaluation_controllers import EvaluationController
from app.domain.agents.knowledge.overview_controllers import KnowledgeOverviewController
from app.domain.agents.llm.controllers import ModelController, ProviderKeyController
from app.domain.agents.search.controllers import WebSearchController
from app.domain.agents.sources.controllers import SourceController
from app.domain.agents.tools.controllers import AgentToolController, ToolController
from app.domain.agents.usage.api import RequestCounter
from app.domain.agents.usage.controllers import UsageController
from app.domain.agents.vault.controllers import CredentialController
from app.domain.automation.approvals.controllers import ApprovalController, ApprovalLinkController
from app.domain.automation.incoming.controllers import IncomingWebhookController, receive_payload
from app.domain.automation.subscriptions.controllers import (
    SubscriptionController,
    TestEventController,
    WorkflowSubscriptionController,
)
from app.domain.automation.workflows.controllers import (
    WorkflowBatchController,
    WorkflowController,
    WorkflowExecutionController,
    WorkflowNodeTypeController,
)
from app.domain.conversations.chat.controllers import ChatController, ConversationController
from app.domain.conversations.chat.preview_controllers import PreviewController
from app.domain.conversations.chat.summary_controllers import ConversationSummaryController
from app.domain.conversations.embed import api as embed
from app.domain.conversations.embed.controllers import EmbedKeyController, PublicAgentController
from app.domain.conversations.openai.audio_controllers import AudioController
from app.domain.conversations.openai.controllers import OpenAiController
from app.domain.conversations.openai.embedding_controllers import EmbeddingController
from app.domain.conversations.openai.response_controllers import (
    ResponseController,
    StoredResponseController,
)
from app.domain.conversations.speech.controllers import SpeechController
from app.domain.conversations.speech.public_controllers import PublicSpeechController
from app.domain.data.tables.controllers import (
    DataRowController,
    DataTableController,
    DataTransferController,
)
from app.domain.forms.conversation.conversation_controllers import FormConversationController
from app.domain.forms.definition.controllers import (
    FormController,
    FormFieldTypeController,
    FormRecipientController,
)
from app.domain.forms.submissions.controllers import FormSubmissionController
from app.domain.forms.submissions.public_controllers import (
    FormDraftController,
    PublicFormController,
)
from app.domain.identity.accounts.controllers import AuthController, UserController
from app.domain.identity.console.controllers import ConsoleSessionController
from app.domain.identity.mfa.controllers import (
    MfaController,
    MfaResetController,
    MfaSignInController,
)
from app.domain.identity.profile.controllers import AvatarController, ProfileController
from app.domain.identity.roles.controllers import RoleController
from app.domain.identity.saved_views.controllers import SavedViewController
from app.domain.identity.service_keys.controllers import ServiceKeyController
from app.domain.identity.tenants.api import rate_limits
from app.domain.identity.tenants.controllers import TenantController
from app.domain.messaging.notifications.controllers import ChannelController, NotificationController
from app.domain.messaging.webhooks.controllers import WebhookController
from app.domain.platform.events.api import RequestSpans
from app.domain.platform.events.controllers import EventLogController, EventTypeController
from app.domain.platform.files.controllers import FileController
from app.domain.platform.history.controllers import HistoryController
from app.domain.platform.settings.controllers import SettingsController
from app.domain.platform.storage import api as storage
from app.domain.platform.work.controllers import WorkController
from app.http import (
    authorization,
    bodies,
    errors,
    health,
    idempotency,
    openapi,
    preconditions,
    request_cancellation,
    route_options,
)
from app.http.authorization import caller_of, principal_of
from app.http.bodies import MAX_BYTES, StrictRequest
from app.http.connection_guard import ConnectionLimits
from app.http.costs import CostTable
from app.http.dependencies import services_of
from app.http.gate import Callbacks, Gate
from app.http.limiter import SCRIPT
from app.http.openapi_route import cached_document, openapi_json
from app.http.paging import provide_page
from app.http.route_options import (
    list_handlers,
    options_of,
    replace_options,
    request_options,
)
from app.http.server_protocol import BoundedHttpProtocol
from app.http.stalls import watch_requests
from app.http.transaction import provide_context, provide_tx
from app.http.uploads import MEGABYTE
from app.jobs import background
from app.kit import logs, memory
from app.kit.redis import LuaScriptClient
from app.observe import metrics_server, transaction_waits
from app.security.principal import ClientInfo, Principal
from app.services import Services
from app.settings import Settings
from app.web.accounts import account_page
from app.web.approvals import approval_page
from app.web.assets import asset, embed_script
from app.web.chat_frame import chat_frame
from app.web.console_page import console_file, console_page
from app.web.demo import demo_page
from app.web.docs_page import docs_page
from app.web.forms import form_page
from app.web.home import home_page
from app.web.trace import trace_page

ROUTES: list[Any] = [
    AuthController,
    MfaSignInController,
    ConsoleSessionController,
    MfaController,
    UserController,
    MfaResetController,
    RoleController,
    ServiceKeyController,
    SavedViewController,
    ProfileController,
    AvatarController,
    TenantController,
    AgentController,
    AgentBatchController,
    AgentDraftController,
    SubAgentController,
    ChatController,
    PreviewController,
    ConversationController,
    ConversationSummaryController,
    SpeechController,
    EmbedKeyController,
    PublicAgentController,
    PublicSpeechController,
    OpenAiController,
    ResponseController,
    StoredResponseController,
    AudioController,
    EmbeddingController,
    ModelController,
    ProviderKeyController,
    CredentialController,
    KnowledgeController,
    KnowledgeOverviewController,
    SourceController,
    EvaluationController,
    DataTableController,
    DataRowController,
    FileController,
    DataTransferController,
    ToolController,
    AgentToolController,
    WebSearchController,
    EventTypeController,
    SubscriptionController,
    WorkflowSubscriptionController,
    TestEventController,
    EventLogController,
    HistoryController,
    WebhookController,
    IncomingWebhookController,
    WorkflowController,
    WorkflowBatchController,
    WorkflowExecutionController,
    WorkflowNodeTypeController,
    FormController,
    FormSubmissionController,
    FormFieldTypeController,
    PublicFormController,
    FormRecipientController,
    FormConversationController,
    FormDraftController,
    receive_payload,
    ChannelController,
    NotificationController,
    ApprovalController,
    ApprovalLinkController,
    UsageController,
    WorkController,
    SettingsController,
    home_page,
    account_page,
    approval_page,
    trace_page,
    demo_page,
    form_page,
    console_page,
    console_file,
    asset,
    chat_frame,
    embed_script,
    health.live,
    health.ready,
    openapi_json,
    docs_page,
]


def provide_services(request: Request[Any, Any, Any]) -> Services:
    return services_of(request)


def provide_principal(request: Request[Any, Any, Any]) -> Principal:
    return principal_of(request)


def provide_address(request: Request[Any, Any, Any]) -> str:
    return caller_of(request).address


def provide_client(request: Request[Any, Any, Any]) -> ClientInfo:
    caller = caller_of(request)
    return ClientInfo(caller.source, caller.address, request.headers.get("user-agent"))


async def before_handler(request: Request[Any, Any, Any]) -> Response[bytes] | None:
    authorization.authorize(request, request.route_handler)
    request_cancellation.allow_cancellation(request)
    bodies.announce_use(request)
    if authorization.uses_embed_key(request, request.route_handler):
        await embed.admit(request)
    response = await idempotency.claim_or_replay(request)
    preconditions.begin(request)
    options = request_options(request)
    if response is None and options.stores:
        await storage.require_space(services_of(request), principal_of(request).home)
    if response is None and options.upload:
        # Before Litestar parses it, which then finds the parsed form.
        await request.form()
    return response


async def after_handler(response: Response[Any]) -> Response[Any]:
    return preconditions.add_tag(await idempotency.store_response(response))


def create_app(settings: Settings | None = None, *, routes: list[Any] | None = None) -> Litestar:
    """`routes` adds handlers to the application's own; tests use it."""
    settings = settings or configuration.load()
    services = container.build(settings)
    script = LuaScriptClient(settings.redis_address, SCRIPT)
    metrics_routes = [health.metrics] if settings.has_metrics_on_web_port else []
    app = Litestar(
        route_handlers=[*ROUTES, *metrics_routes, *(routes or [])],
        dependencies=_dependencies(),
        before_request=before_handler,
        after_request=after_handler,
        exception_handlers={Exception: errors.handle},
        request_class=StrictRequest,
        request_max_body_size=MAX_BYTES,
        openapi_config=openapi.config(__version__),
        lifespan=[partial(_lifespan, services, script)],
        logging_config=None,
        debug=False,
    )
    route_options.apply(app, AREAS.permission_keys)
    preconditions.apply(app)
    _limit_uploads(app, settings)
    app.state.services = services
    app.state.reports = health.Reports(services)
    app.state.openapi = cached_document(app)
    app.asgi_handler = app.state.gate = _gate(app, services, script)
    return app


@asynccontextmanager
async def _lifespan(
    services: Services, script: LuaScriptClient, app: Litestar
) -> AsyncIterator[None]:
    settings, stopped = services.settings, asyncio.Event()
    try:
        await services.readiness.check()
        background.spawn(services.readiness.watch(stopped))
        if settings.metrics_listener is not None:
            page, directory = app.state.reports.metrics, settings.metrics_dir
            background.spawn(
                metrics_server.serve_until(stopped, page, settings.metrics_listener, directory)
            )
        if settings.demo:
            background.spawn(demo.prepare(services, stopped))
        with watch_requests():
            yield
    finally:
        stopped.set()
        script.close()
        await services.close()


def _limit_uploads(app: Litestar, settings: Settings) -> None:
    """Sets the largest body of routes whose files are limited by PARLEY_MAX_BODY_MB, and by
    `max_upload_mb` where the route has it: room for the number of such files that `full_files`
    names, and for the rest of the body. A file that is streamed is limited by PARLEY_MAX_FILE_MB.
    """
    for _, _, handler in list_handlers(app):
        options, max_mb = options_of(handler), settings.max_body_mb
        if options.streamed_file is not None:
            max_mb = settings.max_file_mb
            replace_options(handler, max_upload_mb=max_mb)
        elif options.full_files is None:
            continue
        elif options.max_upload_mb is not None:
            max_mb = min(max_mb, options.max_upload_mb)
            replace_options(handler, max_upload_mb=max_mb)
        files = options.full_files or 1
        handler.request_max_body_size = files * max_mb * MEGABYTE + MAX_BYTES


def _dependencies() -> dict[str, Provide]:
    return {
        "tx": Provide(provide_tx),
        "services": Provide(provide_services, sync_to_thread=False),
        "principal": Provide(provide_principal, sync_to_thread=False),
        "context": Provide(provide_context),
        "address": Provide(provide_address, sync_to_thread=False),
        "client": Provide(provide_client, sync_to_thread=False),
        "page_in": Provide(provide_page, sync_to_thread=False),
    }


def _gate(app: Litestar, services: Services, script: LuaScriptClient) -> Gate:
    return Gate(
        app.asgi_handler,
        services=services,
        script=script,
        costs=_cost_table(app),
        callbacks=Callbacks(
            on_limited=partial(rate_limits.emit_for_caller, services),
            on_finished=services.get(RequestSpans).add,
            on_admitted=services.get(RequestCounter).add_request,
        ),
    )


def _cost_table(app: Litestar) -> CostTable:
    """The costs of the routes that declare one with `cost=`."""
    route_costs = []
    for method, path, handler in list_handlers(app):
        options = options_of(handler)
        if options.cost is not None:
            keyed = options.keyed is not None or options.tenant_pays
            route_costs.append((method, path, options.cost, keyed))
    return CostTable(route_costs)


def asgi() -> Litestar:
    """The application factory that uvicorn calls in each web process."""
    settings = configuration.load()
    logs.configure(settings.log_level, settings.log_format)
    transaction_waits.count()
    BoundedHttpProtocol.limits = ConnectionLimits.of(settings)
    app = create_app(settings)
    memory.tune_gc()
    memory.return_large_blocks()
    return app
