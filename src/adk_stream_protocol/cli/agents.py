"""Finds the agent that a command line names: a folder, a `module:attribute`, or the demo."""

from __future__ import annotations

import importlib
import re
import sys
import traceback
from pathlib import Path
from typing import Final

from google.adk.agents.base_agent import BaseAgent
from google.adk.apps.app import App
from google.adk.cli.utils.agent_loader import AgentLoader
from google.adk.cli.utils.envs import load_dotenv_for_agent
from google.adk.models.google_llm import Gemini
from google.adk.models.registry import LLMRegistry
from google.adk.workflow import BaseNode
from google.genai import Client

from adk_stream_protocol.demo.agent import PaymentBook, build_agent
from adk_stream_protocol.demo.offline_model import OfflineModel
from adk_stream_protocol.errors import BadRequest
from adk_stream_protocol.held_calls.policy import ToolRule

__all__ = ["DEMO_RULES", "demo_agent", "gemini_demo_agent", "load_agent", "model_text"]

DEMO_RULES: Final = {
    "process_payment": ToolRule(
        title="Send money",
        hint="Nothing is sent unless you approve.",
        risk="high",
        editable=True,
        remember=True,
    ),
    "get_location": ToolRule(
        title="Share where you are",
        hint="Your browser tells the agent your position.",
        risk="low",
        browser=True,
        approval=True,
    ),
}
"""How the demo's questions are shown to people."""

_FORMS: Final = "Give an ADK agent folder (with agent.py) or module:attribute."


def demo_agent(*, delay: float, payments: PaymentBook | None = None) -> BaseAgent:
    """Return the demo on the offline model."""
    # A little faster than it plays, so that a player never runs dry and can still be interrupted.
    model = OfflineModel(delay=delay, speech_pace=0.8 if delay else 0.0)
    return build_agent(model, payments)


def gemini_demo_agent(model: str) -> BaseAgent:
    """Return the demo on a model that ADK knows; a `.env` here or above is read, as ADK does.

    Raises:
        BadRequest: there is no such model, or no key for it.
    """
    load_dotenv_for_agent("", str(Path.cwd()))
    try:
        kind = LLMRegistry.resolve(model)
    except (ValueError, ImportError):
        raise BadRequest(
            f"There is no model {model!r}. Name a Gemini model, such as gemini-2.5-flash.",
            code="bad_model",
        ) from None
    if issubclass(kind, Gemini):
        _check_key(model)
    return build_agent(model)


def load_agent(reference: str) -> BaseAgent | App:
    """Return the agent that a folder or `module:attribute` holds; its code is run.

    Raises:
        BadRequest: there is none, or its code fails; the message says where.
    """
    path = Path(reference)
    if path.is_dir():
        return _from_folder(path.resolve())
    if path.is_file():
        raise _bad_agent(f"{reference} is a file. Name its folder: {path.parent}.")
    module, colon, attribute = reference.partition(":")
    if not colon:
        raise _bad_agent(f"There is no folder {reference}. {_FORMS}")
    if not module or not attribute:
        raise _bad_agent(f"{reference!r} lacks a module or an attribute. {_FORMS}")
    return _from_module(module, attribute)


def model_text(agent: BaseAgent | App) -> str:
    """Return the name of the model that the agent starts with; empty if it has none."""
    root = agent.root_agent if isinstance(agent, App) else agent
    model = getattr(root, "model", "")
    return model if isinstance(model, str) else str(getattr(model, "model", ""))


def _check_key(model: str) -> None:
    try:
        # Makes no request; finds a key or Vertex AI settings as Gemini itself will.
        Client()
    except Exception:  # noqa: BLE001  # google-auth raises kinds of its own
        raise BadRequest(
            f"There is no key for {model}. Set GOOGLE_API_KEY or GEMINI_API_KEY (or Vertex AI's "
            "GOOGLE_GENAI_USE_VERTEXAI, GOOGLE_CLOUD_PROJECT and GOOGLE_CLOUD_LOCATION), or leave "
            "--model out to run offline.",
            code="no_key",
        ) from None


def _from_folder(folder: Path) -> BaseAgent | App:
    alone = (folder / "agent.py").is_file() or (folder / "root_agent.yaml").is_file()
    if not alone and not (folder / "__init__.py").is_file():
        inside = AgentLoader(str(folder)).list_agents()
        if inside:
            raise _bad_agent(
                f"{folder} holds several agents: {', '.join(inside)}. "
                f"Name one: {folder / inside[0]}."
            )
        raise _bad_agent(f"There is no agent.py in {folder}. {_FORMS}")
    if re.fullmatch(r"\w+", folder.name, re.ASCII) is None:
        raise _bad_agent(
            f"The folder {folder} cannot be imported. Name it with letters, digits and underscores."
        )
    loader = AgentLoader(str(folder if alone else folder.parent))
    try:
        return _checked(loader.load_agent(folder.name), str(folder))
    except BadRequest:
        raise
    except ValueError:
        # The loader's own; one that the agent's code raises comes wrapped.
        raise _bad_agent(
            f"The code in {folder} defines no ADK agent. Name the agent root_agent, or the App app."
        ) from None
    except Exception as error:  # whatever the agent's own code raises
        raise _failed(str(folder), error.__cause__ or error) from error


def _from_module(module: str, attribute: str) -> BaseAgent | App:
    reference = f"{module}:{attribute}"
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        found: object = importlib.import_module(module)
        for name in attribute.split("."):
            found = getattr(found, name)
        if callable(found) and not isinstance(found, BaseNode | App):
            found = found()
        return _checked(found, reference)
    except BadRequest:
        raise
    except Exception as error:  # whatever the agent's own code raises
        raise _failed(reference, error) from error


def _checked(found: object, reference: str) -> BaseAgent | App:
    if isinstance(found, BaseAgent | App):
        return found
    if isinstance(found, BaseNode):
        return App(name=found.name, root_agent=found)
    raise _bad_agent(
        f"{reference} is of type {type(found).__name__}, which is no ADK agent. {_FORMS}"
    )


def _bad_agent(message: str) -> BadRequest:
    return BadRequest(message, code="bad_agent")


def _failed(reference: str, error: BaseException) -> BadRequest:
    """Say in one line what went wrong in the agent's code, and where."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = {__file__, importlib.__file__}
    theirs = [
        frame
        for frame in frames
        if frame.filename not in ours and not frame.filename.startswith("<")
    ]
    where = f" at {theirs[-1].filename}:{theirs[-1].lineno}" if theirs else ""
    if isinstance(error, SyntaxError):
        where = f" at {error.filename}:{error.lineno}"
    said = " ".join(str(error).split())
    return _bad_agent(
        f"The agent {reference} cannot be loaded: {type(error).__name__}: {said}{where}"
    )
