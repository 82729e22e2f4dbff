"""A loop on a stage: a real server, waits of the loop that take no time, and every request on record."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import httpx
from support.deployment import Deployment

from kslate import Agent, Client, Fields, Summary, run
from kslate._clock import Clock, Stop
from kslate._signals import StopSignals
from kslate._transport import Transport

DOCUMENT = {"goal": "drain node-7", "progress": "none", "decisions": [], "open_questions": []}


class ImpatientClock(Clock):
    """The loop's own waits take no time; leases run as they do."""

    def __init__(self) -> None:
        self.waits: list[float] = []

    def wait(self, seconds: float, stop: Stop | None = None) -> bool:
        if isinstance(stop, StopSignals):
            self.waits.append(seconds)
            return stop.received is not None
        return super().wait(seconds, stop)


@dataclass
class Sent:
    """A request and its answer."""

    method: str
    path: str
    body: Any
    status: int
    answer: Any

    @property
    def operation(self) -> str:
        """`PUT status`, `POST claim`: what is done, without the record."""
        return f"{self.method} {self.path.rpartition('/')[2]}"


class Stage(httpx.BaseTransport):
    def __init__(self, deployment: Deployment, token: str = "w1-token") -> None:
        self.deployment = deployment
        self.class_name = deployment.own_class()
        self.clock = ImpatientClock()
        self.sent: list[Sent] = []
        self.client = Client(deployment.server, token)
        self.client._transport = Transport(deployment.server, token, timeout=30, retry_for=30, clock=self.clock, http=self)
        self.diagnoser = Client(deployment.server, "diag-token")
        self._wire = httpx.HTTPTransport()

    def close(self) -> None:
        self.client.close()
        self.diagnoser.close()
        self._wire.close()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        response = self._wire.handle_request(request)
        content = response.read()
        body = json.loads(request.content) if request.content else None
        self.sent.append(Sent(request.method, request.url.path, body, response.status_code, json.loads(content)))
        return response

    def record(self, **fields: Any) -> str:
        """A new record, in a class of the stage's own."""
        return self.deployment.own_record(self.class_name, fields or None)

    def run(
        self,
        decide: Callable[[Fields], Any],
        build_checkpoint: Callable[[Fields], dict[str, Any] | None] | None = None,
        **more: Any,
    ) -> Summary:
        what = {} if "record" in more else {"class_name": self.class_name}
        return run(Agent(decide, build_checkpoint), self.client, **{"claim_field": "remediation", **what, **more})

    def operations(self, *leave_out: str) -> list[str]:
        return [sent.operation for sent in self.sent if sent.operation not in leave_out]

    def ops(self, record: str) -> list[str]:
        """What history says was done."""
        return [row.op for row in self.diagnoser.history_all(record)]

    def last(self, record: str) -> Any:
        """The last row of history."""
        return self.diagnoser.history(record, page_size=1, newest_first=True).history[0]
