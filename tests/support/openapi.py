"""Holds responses against the OpenAPI description of the app that gave them."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]  # it has no types

from support.chunk_schema import check_chunk

__all__ = ["Contract", "Operation"]

_NO_BODY = {204, 304}


@dataclass(frozen=True)
class Operation:
    """One method of one path, as it is described."""

    method: str
    path: str
    described: Mapping[str, Any]

    @property
    def id(self) -> str:
        return str(self.described["operationId"])

    @property
    def statuses(self) -> set[int]:
        """The statuses that are described one by one."""
        return {int(status) for status in self.described["responses"] if status != "default"}

    def parameters(self, place: str) -> list[Mapping[str, Any]]:
        """Return the parameters of the `path` or the `query`."""
        return [each for each in self.described.get("parameters", ()) if each["in"] == place]

    def matches(self, method: str, path: str) -> bool:
        pattern = re.sub(r"\\{\w+\\}", ".+", re.escape(self.path))
        return method == self.method and re.fullmatch(pattern, path) is not None


@dataclass
class Contract:
    """A description, and which of its statuses were seen."""

    document: Mapping[str, Any]
    seen: dict[str, set[int]] = field(default_factory=lambda: defaultdict(set))
    """The statuses that each operation gave, by its id."""

    def operations(self) -> Iterator[Operation]:
        for path, methods in self.document["paths"].items():
            for method, described in methods.items():
                yield Operation(method.upper(), path, described)

    def operation(self, request: httpx.Request) -> Operation:
        """Return the operation of a request: the one whose path says most."""
        path = request.url.path
        found = [each for each in self.operations() if each.matches(request.method, path)]
        assert found, f"no operation is {request.method} {path}"
        return max(found, key=lambda each: len(re.sub(r"\{\w+\}", "", each.path)))

    def check(self, response: httpx.Response) -> httpx.Response:
        """Check that a response is described, as it is; return it."""
        operation = self.operation(response.request)
        status = response.status_code
        assert status in operation.statuses, f"{operation.id}: {status} {response.text}"
        self.seen[operation.id].add(status)
        described = operation.described["responses"][str(status)]
        if status in _NO_BODY:
            assert not response.content
            assert "content" not in described
            return response
        self._check_body(described["content"], response)
        return response

    def _check_body(self, content: Mapping[str, Any], response: httpx.Response) -> None:
        kind = response.headers["content-type"].partition(";")[0]
        media = content.get(kind, content.get("*/*"))
        assert media is not None, f"{kind} is none of {list(content)}"
        if kind == "text/event-stream":
            for line in response.text.splitlines():
                if line.startswith("data: {"):
                    check_chunk(json.loads(line.removeprefix("data: ")))
        elif kind == "application/x-ndjson":
            for line in response.text.splitlines():
                self._validate(media["itemSchema"], json.loads(line))
        elif kind.endswith("json"):
            self._validate(media["schema"], response.json())
        else:
            assert media["schema"]["type"] == "string"

    def _validate(self, schema: Mapping[str, Any], value: object) -> None:
        whole = {**schema, "components": self.document.get("components", {})}
        Draft202012Validator(whole).validate(value)
