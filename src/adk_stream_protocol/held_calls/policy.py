"""What is asked of the client for which tool, and how the request is shown.

Whether a tool needs approval is ADK's own `require_confirmation`; a rule only adds how it is
shown, how long it waits, and which tools run in the browser.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from google.adk.agents.base_agent import BaseAgent
from google.adk.tools.base_tool import BaseTool

from adk_stream_protocol.held_calls.deciders import check_steps
from adk_stream_protocol.lifecycle import ApprovalStep
from adk_stream_protocol.wire.values import JsonObject

__all__ = ["RULE_KEY", "Policy", "Reconciled", "ToolRule"]

RULE_KEY: Final = "adk_stream_rule"
"""Where a tool carries its own rule, in ADK's `BaseTool.custom_metadata`."""


@dataclass(frozen=True, slots=True)
class Reconciled:
    """What became of a call whose process died while it ran."""

    result: object = None
    """What the tool would have returned."""
    error: str | None = None
    """Why it failed, in public words; None: it did what it was asked."""


@dataclass(frozen=True, slots=True)
class ToolRule:
    """How the calls of one tool are held and shown."""

    title: str = ""
    """A short name for people; empty: the tool's name."""
    hint: str = ""
    """Why the person is asked; empty: what ADK or the tool says."""
    risk: str = ""
    """A label for the card, such as `low` or `high`."""
    expires_in: float | None = None
    """Seconds until an undecided call expires; None: the server's default."""
    browser: bool = False
    """The client runs the tool; its function never runs here."""
    approval: bool = False
    """For a browser tool: the person is asked before the browser runs it."""
    ui: JsonObject = field(default_factory=dict)
    """Free metadata for the client's card."""
    idempotent: bool = False
    """The tool may be run again under the same call id (`tool_context.function_call_id`): a
    second run of it changes nothing. It is, when the process dies while the tool runs."""
    reconcile: Callable[[str], Awaitable[Reconciled | None]] | None = None
    """Says what a call of this id did, when the process died while it ran; None: not known."""
    steps: tuple[ApprovalStep, ...] = ()
    """The approvals it needs, one after another, each by another person; empty: one."""
    editable: bool = False
    """Whoever approves a call first may change its arguments, within the tool's own schema."""
    decide: Callable[[JsonObject], bool | None] | None = None
    """Decides a call by its arguments: True lets it run, False refuses it, None asks a person."""
    remember: bool = False
    """Whoever approves a call may approve all later ones of the tool in the same chat, too."""

    def over(self, other: ToolRule) -> ToolRule:
        """Return this rule with what it leaves open filled from another.

        Who runs the tool and whether it is asked for can only be added, never taken away: a rule
        that just gives a title must not let a browser tool run on the server.
        """
        return ToolRule(
            title=self.title or other.title,
            hint=self.hint or other.hint,
            risk=self.risk or other.risk,
            expires_in=other.expires_in if self.expires_in is None else self.expires_in,
            browser=self.browser or other.browser,
            approval=self.approval or other.approval,
            ui={**other.ui, **self.ui},
            idempotent=self.idempotent or other.idempotent,
            reconcile=self.reconcile or other.reconcile,
            steps=self.steps or other.steps,
            editable=self.editable or other.editable,
            decide=self.decide or other.decide,
            remember=self.remember or other.remember,
        )


def _public_error(tool_name: str, _error: Exception) -> str:
    return f"The tool {tool_name} failed."


@dataclass(frozen=True, slots=True)
class Policy:
    """The rules of all tools, and the limits of asking."""

    tools: Mapping[str, ToolRule] = field(default_factory=dict)
    """What was said by name."""
    carried: Mapping[str, ToolRule] = field(default_factory=dict)
    """What tools carry, by their names: to show a call, never to decide who runs it."""
    expires_in: float = 3600.0
    """Seconds an undecided call waits, unless its rule says otherwise."""
    max_pending: int = 20
    """How many calls may wait for one user at a time."""
    error_text: Callable[[str, Exception], str] = _public_error
    """What client and model are told when a tool raises; the exception itself stays here."""
    _learned: dict[str, ToolRule] = field(default_factory=dict, compare=False)
    """What tools in toolsets carry, by their names, as far as runs of this process met them."""

    def rule(self, tool_name: str) -> ToolRule:
        """Return how calls of a tool are shown; every name has a rule.

        What a tool in a toolset carries is in it only once a model was offered the tool, in this
        process: which tools those are is known only in a run. `rule_of` knows.
        """
        carried = self.carried.get(tool_name) or self._learned.get(tool_name, _PLAIN)
        named = self.tools.get(tool_name)
        return carried if named is None else named.over(carried)

    def rule_of(self, tool: BaseTool) -> ToolRule:
        """Return the rule for a tool: the one it carries itself, under what is said by name."""
        own = (tool.custom_metadata or {}).get(RULE_KEY)
        carried = own if isinstance(own, ToolRule) else _PLAIN
        named = self.tools.get(tool.name)
        return carried if named is None else named.over(carried)

    def learn(self, tools: Iterable[BaseTool]) -> None:
        """Note what tools carry that a model is offered: those in toolsets were not known yet."""
        for tool in tools:
            own = (tool.custom_metadata or {}).get(RULE_KEY)
            if isinstance(own, ToolRule) and tool.name not in self.carried:
                self._learned[tool.name] = own

    def check(self, *, open_to_others: bool) -> None:
        """Return if the rules make sense together.

        Args:
            open_to_others: whether the app says who else may decide.

        Raises:
            ValueError: one does not; the message says which, and what to do.
        """
        for name in {*self.tools, *self.carried}:
            rule = self.rule(name)
            check_steps(name, rule.steps, open_to_others=open_to_others)
            if rule.remember and rule.steps:
                raise ValueError(
                    f"{name} is approved in steps, each time by each of them: `remember` would "
                    "let one person decide for all. Leave it out."
                )
            if rule.browser and (rule.remember or rule.decide is not None):
                raise ValueError(
                    f"The browser runs {name}, and asks there: `decide` and `remember` are for "
                    "tools that run on the server."
                )

    def runs_at_once_in_browser(self, tool_name: str) -> bool:
        """Whether the client runs the tool as soon as it sees the call."""
        rule = self.rule(tool_name)
        return rule.browser and not rule.approval

    def runs_in_browser_after_approval(self, tool_name: str) -> bool:
        """Whether the client runs the tool once a person has approved the call."""
        rule = self.rule(tool_name)
        return rule.browser and rule.approval

    def with_rules_of(self, agent: object) -> Policy:
        """Return a policy that also knows, by name, the rules that the agents' tools carry."""
        own: dict[str, ToolRule] = {}
        for tool in _tools_of(agent):
            rule = (tool.custom_metadata or {}).get(RULE_KEY)
            if isinstance(rule, ToolRule):
                own[tool.name] = rule
        return replace(self, carried=own)


_PLAIN: Final = ToolRule()


def _tools_of(agent: object) -> Iterator[BaseTool]:
    for tool in getattr(agent, "tools", None) or []:
        if isinstance(tool, BaseTool):
            yield tool
    for child in getattr(agent, "sub_agents", None) or []:
        if isinstance(child, BaseAgent):
            yield from _tools_of(child)
