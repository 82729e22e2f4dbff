"""Every request and answer of this process, as JSON lines in a file: an agent's own log, whatever the package does.

It stands below the package, at httpx' transport, and so also sees what the package sends by itself: renewals, retries.
"""

from __future__ import annotations

import itertools
import json
import os
import time
from pathlib import Path
from typing import Any

import httpx


class Wiretap:
    """`Wiretap(file, agent)` listens from then on; `note` adds a line of the agent's own."""

    def __init__(self, file: Path, agent: str) -> None:
        # A line is one write: a process that is killed leaves whole lines only.
        self._file = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        self._who = {"agent": agent, "pid": os.getpid()}
        self._numbers = itertools.count(1)
        send = httpx.HTTPTransport.handle_request

        def tapped(transport: httpx.HTTPTransport, request: httpx.Request) -> httpx.Response:
            number = next(self._numbers)
            body = json.loads(request.content or b"null")
            self.note("sent", n=number, method=request.method, path=request.url.path, body=body)
            try:
                response = send(transport, request)
                response.read()
            except httpx.TransportError as error:
                self.note("failed", n=number, error=repr(error))
                raise
            answer = json.loads(response.content or b"null") if _is_json(response) else None
            self.note("answered", n=number, status=response.status_code, answer=answer)
            return response

        httpx.HTTPTransport.handle_request = tapped  # type: ignore[assignment, method-assign]

    def note(self, event: str, **more: Any) -> None:
        line = json.dumps({"event": event, "at": time.time(), **self._who, **more})
        os.write(self._file, line.encode() + b"\n")


def _is_json(response: httpx.Response) -> bool:
    return str(response.headers.get("content-type")).startswith("application/json")
