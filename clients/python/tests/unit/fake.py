"""A clock that is put forward by waiting, and a server that answers from a list."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from typing import Any

import httpx

from kslate import Client
from kslate._clock import Clock, Stop
from kslate._transport import Transport

RECORD = "incidents/inc-1"
CLAIM_ID = "0b9a3d6e-2f0e-4f3e-9d0a-5c1f8c1d7a10"
AT = "2026-11-29T14:40:25+00:00"

Answer = httpx.Response | Exception | Callable[[httpx.Request], httpx.Response]


class FakeClock(Clock):
    """Waiting takes no time, and puts the clock forward; in the main thread, whose clock it is."""

    def __init__(self) -> None:
        self.time = 1000.0
        self.waits: list[float] = []

    def now(self) -> float:
        return self.time

    def wait(self, seconds: float, stop: Stop | None = None) -> bool:
        if isinstance(stop, threading.Event) and stop.is_set():
            return True
        if stop is not None and threading.current_thread() is not threading.main_thread():
            return stop.wait(60)  # the thread of a claim: it waits until it is woken, and never renews
        self.waits.append(seconds)
        self.time += max(seconds, 0.0)
        return False


class FakeServer:
    """Gives the answers one after the other, the last one for ever, and keeps the requests."""

    def __init__(self, *answers: Answer, clock: FakeClock | None = None, takes: float = 0.0) -> None:
        self.answers: Sequence[Answer] = answers
        self.clock = clock or FakeClock()
        self.takes = takes
        self.requests: list[httpx.Request] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        answer = self.answers[min(len(self.requests), len(self.answers) - 1)]
        self.requests.append(request)
        self.clock.time += self.takes
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, httpx.Response):
            return httpx.Response(answer.status_code, headers=answer.headers, content=answer.content)
        return answer(request)

    def client(self, **options: Any) -> Client:
        client = Client("http://kslate.test", "token")
        options = {"timeout": 30.0, "retry_for": 30.0, **options}
        transport = httpx.MockTransport(self)
        client._transport = Transport("http://kslate.test", "token", clock=self.clock, http=transport, **options)
        return client

    @property
    def asked(self) -> list[str]:
        """The last part of each request's path."""
        return [request.url.path.rpartition("/")[2] for request in self.requests]

    def body(self, number: int) -> Any:
        return json.loads(self.requests[number].content)


def ok(**body: Any) -> httpx.Response:
    return httpx.Response(200, json=body)


def refusal(status: int, error: str, headers: dict[str, str] | None = None, **more: Any) -> httpx.Response:
    body = {"error": error, "message": f"a message about {error}", "record": RECORD, **more}
    return httpx.Response(status, json=body, headers=headers)


def granted(lease_seconds: int = 30, **more: Any) -> httpx.Response:
    body = {
        "record": RECORD,
        "field": "remediation",
        "owner": "apikey:remediator/worker-1",
        "role": "remediator",
        "claim_id": CLAIM_ID,
        "epoch": 2,
        "claimed_at": AT,
        "expires_at": AT,
        "lease_seconds": lease_seconds,
        "took_over_from": None,
        "record_version": 4,
    }
    return ok(**{**body, **more})


def renewed(lease_seconds: int = 30) -> httpx.Response:
    return ok(
        record=RECORD,
        field="remediation",
        owner="apikey:remediator/worker-1",
        claim_id=CLAIM_ID,
        epoch=2,
        expires_at=AT,
        lease_seconds=lease_seconds,
    )


def released() -> httpx.Response:
    return ok(record=RECORD, field="remediation", epoch=2, record_version=6, released_at=AT)


def completed() -> httpx.Response:
    return ok(record=RECORD, field="remediation", epoch=2, version=1, record_version=6, completed_at=AT)


def appended() -> httpx.Response:
    who = {"author": "apikey:remediator/worker-1", "role": "remediator", "evidence": None, "added_at": AT}
    return ok(record=RECORD, field="actions_taken", version=1, record_version=5, **who)


def lease_lost(reason: str = "taken_over", field: str = "remediation") -> httpx.Response:
    return refusal(409, "LEASE_LOST", field=field, owner="apikey:remediator/worker-2", reason=reason)
