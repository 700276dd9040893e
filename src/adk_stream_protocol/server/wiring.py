"""Puts the parts together: an agent in, an app or a router out."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass, field, replace
from importlib.metadata import version

from fastapi import APIRouter, FastAPI
from fastapi.middleware.cors import CORSMiddleware
from google.adk.agents.base_agent import BaseAgent
from google.adk.apps.app import App
from google.adk.artifacts.base_artifact_service import BaseArtifactService
from google.adk.artifacts.in_memory_artifact_service import InMemoryArtifactService
from google.adk.auth.credential_service.base_credential_service import BaseCredentialService
from google.adk.memory.base_memory_service import BaseMemoryService
from google.adk.runners import Runner
from google.adk.sessions.base_session_service import BaseSessionService
from google.adk.sessions.in_memory_session_service import InMemorySessionService

from adk_stream_protocol.engine.chat_turns import ChatTurns
from adk_stream_protocol.engine.conversation import Conversations
from adk_stream_protocol.engine.direct_text import DirectText
from adk_stream_protocol.engine.drain import Drain
from adk_stream_protocol.engine.live_run import LiveLimits
from adk_stream_protocol.engine.live_runs import LiveRuns
from adk_stream_protocol.engine.live_sessions import LiveSessions
from adk_stream_protocol.engine.missing_parts import note_missing_parts
from adk_stream_protocol.engine.modes import Modes
from adk_stream_protocol.engine.preparation import Preparation
from adk_stream_protocol.engine.recovery import Recovery
from adk_stream_protocol.engine.request_queue import RequestQueue
from adk_stream_protocol.engine.sessions import Sessions
from adk_stream_protocol.engine.steering import Steering, SteeringPlugin
from adk_stream_protocol.engine.turn import TurnLimits
from adk_stream_protocol.errors import BadRequest
from adk_stream_protocol.held_calls.call_book import CallBook
from adk_stream_protocol.held_calls.deciders import Deciders, MayDecide
from adk_stream_protocol.held_calls.gate import Gate
from adk_stream_protocol.held_calls.ledger import Ledger
from adk_stream_protocol.held_calls.policy import Policy, ToolRule
from adk_stream_protocol.ports import Stores
from adk_stream_protocol.server.approvals_api import approval_routes, audit_routes
from adk_stream_protocol.server.databases import connect
from adk_stream_protocol.server.headers import EXPOSED
from adk_stream_protocol.server.health import health_routes
from adk_stream_protocol.server.identity import Identify, anyone
from adk_stream_protocol.server.metrics import Readings, metrics_routes
from adk_stream_protocol.server.page import page_routes
from adk_stream_protocol.server.probes import Probe
from adk_stream_protocol.server.recorder import Recorder
from adk_stream_protocol.server.routes import Service, chat_routes, history_routes
from adk_stream_protocol.server.schema_routes import schema_routes
from adk_stream_protocol.server.settings import Settings
from adk_stream_protocol.server.sockets import socket_routes
from adk_stream_protocol.stores.memory import memory_stores
from adk_stream_protocol.stores.opening import parse_database
from adk_stream_protocol.telemetry import Meters
from adk_stream_protocol.translation.contents import ContentLimits
from adk_stream_protocol.translation.events import TranslationOptions
from adk_stream_protocol.transports.lasting import Lasting

__all__ = ["Services", "create_app", "create_router", "create_service", "turns_of"]


@dataclass(frozen=True, slots=True)
class Services:
    """ADK's own services for the agent; by default everything lives in memory."""

    sessions: BaseSessionService = field(default_factory=InMemorySessionService)
    artifacts: BaseArtifactService = field(default_factory=InMemoryArtifactService)
    memory: BaseMemoryService | None = None
    credentials: BaseCredentialService | None = None


def create_router(
    agent: BaseAgent | App,
    *,
    tools: Mapping[str, ToolRule] | None = None,
    identify: Identify = anyone,
    settings: Settings | None = None,
    services: Services | None = None,
    database: str | None = None,
    stores: Stores | None = None,
    options: TranslationOptions | None = None,
    may_decide: MayDecide | None = None,
) -> APIRouter:
    """Return the routes that serve an agent, for an app you have: `app.include_router(...)`.

    The router brings its own lifespan; FastAPI runs it with the app's.

    Args:
        agent: an ADK agent or `App`. It is used as it is, with one plugin added.
        tools: rules by tool name: titles, hints, expiry, and which tools the browser runs.
        identify: names the user of a request. By default everyone is one local user: give your
            own before anyone else can reach the server.
        settings: limits and times; by default from the environment.
        services: ADK's session, artifact, memory and credential services.
        database: where everything is kept, ADK's sessions included, as `adk-stream serve
            --database` takes it: `sqlite:///FILE` or `postgresql://...`; by default in memory.
        stores: where turns, held calls and replies are kept, instead of in a database.
        options: what of the agent's inner life a client may see.
        may_decide: says whether a user may decide a call, for approvals by others than the
            person whose chat it is.

    Raises:
        ValueError: a rule asks for an approval that nobody could give.
    """
    service = create_service(
        agent,
        tools=tools,
        identify=identify,
        settings=settings or Settings.from_environment(),
        services=services,
        database=database,
        stores=stores,
        options=options,
        may_decide=may_decide,
    )
    return _router(service)


def _router(service: Service) -> APIRouter:
    conversations = service.conversations
    stores = conversations.stores
    answering, pending = Probe(stores.calls.now), Probe(stores.calls.count_pending)
    readings = Readings(service.meters, conversations.turns, conversations.lives.count, pending)

    @asynccontextmanager
    async def lifespan(_app: object) -> AsyncIterator[None]:
        probes = (answering.serving(), pending.serving())
        # Outermost: it hears the last words of everything else.
        recording = nullcontext() if service.recorder is None else service.recorder.serving()
        async with recording, stores.serving(), probes[0], probes[1], conversations.serving():
            yield

    router = APIRouter(lifespan=lifespan)
    for routes in (
        chat_routes(service, "/api/chat", "ai-sdk"),
        chat_routes(service, "/stream", "adk"),
        socket_routes(service),
        history_routes(service),
        approval_routes(service),
        audit_routes(service),
        schema_routes(),
        health_routes(conversations.turns, answering),
        metrics_routes(readings, service.settings),
    ):
        router.include_router(routes)
    return router


def create_app(
    agent: BaseAgent | App,
    *,
    tools: Mapping[str, ToolRule] | None = None,
    identify: Identify = anyone,
    settings: Settings | None = None,
    services: Services | None = None,
    database: str | None = None,
    stores: Stores | None = None,
    options: TranslationOptions | None = None,
    may_decide: MayDecide | None = None,
) -> FastAPI:
    """Return an app that serves an agent, with its page at `/`. Arguments: `create_router`."""
    settings = settings or Settings.from_environment()
    app = FastAPI(title="adk-stream-protocol", version=version("adk-stream-protocol"))
    if settings.allowed_origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=list(settings.allowed_origins),
            allow_methods=["GET", "POST", "PATCH", "DELETE"],
            allow_headers=["*"],
            expose_headers=list(EXPOSED),
            allow_credentials=True,
        )
    # Around CORS, which only adds to how an answer begins.
    app.add_middleware(Lasting)
    service = create_service(
        agent,
        tools=tools,
        identify=identify,
        settings=settings,
        services=services,
        database=database,
        stores=stores,
        options=options,
        may_decide=may_decide,
    )
    app.include_router(_router(service))
    app.include_router(page_routes())
    app.state.adk_stream_turns = service.conversations.turns
    return app


def turns_of(app: FastAPI) -> ChatTurns:
    """Return the turns of an app that `create_app` made, for a server that drains them."""
    turns: ChatTurns = app.state.adk_stream_turns
    return turns


def _connected(
    database: str, services: Services, stores: Stores | None, settings: Settings
) -> tuple[Services, Stores]:
    """Return ADK's services and the stores with everything in one database."""
    if stores is not None:
        raise BadRequest("Give either database= or stores=, not both.", code="bad_database")
    connected = connect(parse_database(database), settings.keeping())
    if isinstance(services.sessions, InMemorySessionService):
        services = replace(services, sessions=connected.sessions)
    return services, connected.stores


def create_service(
    agent: BaseAgent | App,
    *,
    tools: Mapping[str, ToolRule] | None,
    identify: Identify,
    settings: Settings,
    services: Services | None,
    database: str | None,
    stores: Stores | None,
    options: TranslationOptions | None,
    may_decide: MayDecide | None,
) -> Service:
    """Return what the routes serve, for whoever needs it without them.

    Its stores and conversations are not serving yet. Arguments: `create_router`.
    """
    note_missing_parts()
    services = services or Services()
    if database is not None:
        services, stores = _connected(database, services, stores, settings)
    stores = stores or memory_stores(keep_replies=settings.reply_seconds)
    meters = Meters()
    root = agent.root_agent if isinstance(agent, App) else agent
    policy = Policy(
        tools=tools or {}, expires_in=settings.approval_seconds, max_pending=settings.max_pending
    ).with_rules_of(root)
    policy.check(open_to_others=may_decide is not None)
    ledger = Ledger(stores.calls, policy, Deciders(may_decide), meters)
    content_limits = ContentLimits(
        parts=settings.message_parts,
        text_bytes=settings.text_bytes,
        file_bytes=settings.file_bytes,
    )
    steering = Steering(stores, content_limits)
    runner = _runner(agent, ledger, services, steering, direct_text=settings.direct_text)
    sessions = Sessions(runner)
    lives = LiveRuns(
        sessions,
        stores,
        limits=LiveLimits(
            hold=settings.live_hold_seconds,
            idle=settings.live_idle_seconds,
            leave=settings.live_leave_seconds,
        ),
        modality=settings.live_modality,
        tool_threads=settings.tool_threads,
        joins=settings.direct_text,
        plugins=agent.plugins if isinstance(agent, App) else (),
    )
    preparation = Preparation(
        sessions=sessions,
        ledger=ledger,
        log=stores.log,
        turns=stores.turns,
        modes=Modes(
            sessions,
            lives,
            max_llm_calls=settings.max_llm_calls,
            tool_threads=settings.tool_threads,
        ),
        limits=TurnLimits(turn=settings.turn_seconds, tool=settings.tool_seconds),
        content_limits=content_limits,
        options=options or TranslationOptions(),
    )
    turns = ChatTurns(
        stores,
        steering=steering,
        max_turns=settings.max_turns,
        max_waiting=settings.max_waiting,
        leave=settings.leave_seconds,
        drain=Drain(settings.drain_seconds),
        meters=meters,
    )
    queue = RequestQueue(stores, turns, preparation)
    conversations = Conversations(
        stores=stores,
        ledger=ledger,
        sessions=sessions,
        preparation=preparation,
        turns=turns,
        recovery=Recovery(preparation, queue),
        queue=queue,
        busy=settings.busy,
        lives=lives,
    )
    return Service(conversations, policy, settings, identify, meters, Recorder.of(settings))


def _runner(
    agent: BaseAgent | App,
    ledger: Ledger,
    services: Services,
    steering: Steering,
    *,
    direct_text: bool,
) -> Runner:
    own = agent.plugins if isinstance(agent, App) else []
    sessions = LiveSessions(services.sessions)
    plugins = [CallBook(ledger), SteeringPlugin(steering, sessions), *own, Gate(ledger)]
    if direct_text:
        root = agent.root_agent if isinstance(agent, App) else agent
        plugins.append(DirectText(root, own))
    if isinstance(agent, App):
        app = agent.model_copy(update={"plugins": plugins})
    else:
        app = App(name=agent.name, root_agent=agent, plugins=plugins)
    return Runner(
        app=app,
        session_service=sessions,
        artifact_service=services.artifacts,
        memory_service=services.memory,
        credential_service=services.credentials,
    )
