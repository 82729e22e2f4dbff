"""One request, until it is answered: connecting, telling answers apart, and sending again what is safe to send again.

What is safe: a read, a renewal, and a change under an Idempotency-Key, which is the same for all tries of a call. So a change
whose answer was lost is done once. What is worth it: a lost connection, BUSY, UNAVAILABLE, TIMEOUT, a proxy's 429, 502, 503
and 504. Never another refusal: a 409 sent again is a 409.
"""

from __future__ import annotations

import contextlib
import logging
import os
import random
import re
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import httpx

from kslate import _json
from kslate._clock import Clock, Stop
from kslate._errors import (
    Busy,
    ConnectionFailed,
    GatewayFailed,
    KslateError,
    Malformed,
    Transient,
    Unauthenticated,
    UnexpectedAnswer,
    error_of,
)
from kslate._request import Call

log = logging.getLogger("kslate")

DEFAULT_SERVER = "http://127.0.0.1:8080"

_FIRST_DELAY, _LONGEST_DELAY = 0.2, 5.0
_LONGEST_RETRY_AFTER = 60.0
_BAD_GATEWAY = {429, 502, 503, 504}
_NEVER_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.ProxyError)
_OUR_FAULT = (httpx.UnsupportedProtocol, httpx.LocalProtocolError)


@dataclass(frozen=True)
class Reply:
    """An accepted answer. `sent_at` is when the first try was sent that may have brought it about."""

    body: Any
    sent_at: float


class Transport:
    """Thread-safe. Nothing is opened, and no environment read, before the first request."""

    def __init__(
        self,
        server: str | None,
        token: str | None,
        *,
        timeout: float,
        retry_for: float,
        parse_float: Callable[[str], Any] = float,
        clock: Clock | None = None,
        http: httpx.BaseTransport | None = None,
    ) -> None:
        self.clock = clock or Clock()
        self.timeout = timeout
        self.retry_for = retry_for
        self._server = server
        self._token = token
        self._parse_float = parse_float
        self._http = http
        self._lock = threading.Lock()
        self._session: httpx.Client | None = None
        self._session_pid = 0
        self._closed = False

    @property
    def server(self) -> str:
        return (self._server or os.environ.get("KSLATE_SERVER") or DEFAULT_SERVER).rstrip("/")

    def close(self) -> None:
        with self._lock:
            self._closed = True
            session, self._session = self._session, None
        if session is not None and self._session_pid == os.getpid():
            session.close()

    def send(
        self,
        call: Call,
        *,
        timeout: float | None = None,
        retry_for: float | None = None,
        stop: Stop | None = None,
    ) -> Reply:
        """Send until answered, for at most `retry_for` seconds of tries; `stop` ends the waiting between two of them.
        Raises what the last try was refused with."""
        now = self.clock.now
        until = now() + (self.retry_for if retry_for is None else retry_for)
        sent_at: float | None = None
        tries = 0
        while True:
            began = now()
            sent_at = began if sent_at is None else sent_at
            try:
                return Reply(self._try(call, timeout), sent_at)
            except Transient as failed:
                if sent_at == began and _changed_nothing(failed):
                    sent_at = None
                delay = _delay(tries, failed)
                if now() + delay > until:
                    raise
                tries += 1
                again = " (under the same idempotency key)" if call.idempotency_key else ""
                log.warning("%s failed: %s; sending it again in %.1f s%s", call, _short(failed), delay, again)
                if self.clock.wait(delay, stop):
                    raise

    def _try(self, call: Call, timeout: float | None) -> Any:
        headers = {}
        content = None
        if call.source is not None:
            headers["Content-Type"] = "application/yaml"
            content = call.source.encode()
        elif call.body is not None:
            headers["Content-Type"] = "application/json"
            content = _json.encode(call.body)
        if call.idempotency_key is not None:
            headers["Idempotency-Key"] = _printable(call.idempotency_key)
        session = self._open()
        try:
            response = session.request(
                call.method,
                self.server + call.path,
                params=call.query or None,
                content=content,
                headers=headers,
                timeout=httpx.Timeout(self.timeout) if timeout is None else _split(timeout),
            )
        except _OUR_FAULT as fault:
            raise ValueError(f"cannot send {call} to {self.server}: {fault}") from fault
        except httpx.TransportError as failed:
            raise _connection_failed(failed, self.server) from failed
        except httpx.RequestError as failed:  # an answer that cannot be read: a coding that is none
            raise UnexpectedAnswer(f"cannot read what {self.server} answered to {call}: {failed}") from failed
        return self._read(call, response)

    def _read(self, call: Call, response: httpx.Response) -> Any:
        status = response.status_code
        request_id = response.headers.get("X-Request-Id")
        try:
            body = _json.decode(response.content, self._parse_float)
        except (ValueError, RecursionError):
            body = None
        if response.is_success and isinstance(body, dict):
            return body
        if status >= 400 and isinstance(body, dict) and _is_error(body):
            raise error_of(status, body, request_id)
        raised = GatewayFailed if status in _BAD_GATEWAY else UnexpectedAnswer
        error = raised(
            f"{self.server} answered {call} with {status} {response.reason_phrase} and no answer of kslate: "
            f"{' '.join(response.text[:200].split()) or 'an empty body'}",
            status=status,
            request_id=request_id,
        )
        if isinstance(error, Transient):
            error.retry_after_seconds = _retry_after(response.headers.get("Retry-After"))
        raise error

    def _open(self) -> httpx.Client:
        with self._lock:
            if self._closed:
                raise RuntimeError("this kslate.Client is closed")
            # A forked child must not write into its parent's connections.
            if self._session is None or self._session_pid != os.getpid():
                self._session = httpx.Client(transport=self._http, headers=self._headers())
                self._session_pid = os.getpid()
            return self._session

    def _headers(self) -> dict[str, str]:
        if not self.server.startswith(("http://", "https://")):
            raise ValueError(f"the server's address must begin with http:// or https://: {self.server}")
        token = (self._token or os.environ.get("KSLATE_APIKEY") or "").strip()
        if not token:
            raise Unauthenticated("no API key: give Client a token, or set KSLATE_APIKEY")
        if not (token.isascii() and token.isprintable()):
            raise Unauthenticated("the API key has characters that cannot stand in a header")
        return {"Authorization": f"Bearer {token}", "Accept": "application/json", "User-Agent": "kslate-python"}


def _is_error(body: Mapping[str, Any]) -> bool:
    """A proxy's answer may have both keys as well, but no word of ours."""
    error = body.get("error")
    return isinstance(error, str) and re.fullmatch("[A-Z_]+", error) is not None and isinstance(body.get("message"), str)


def _changed_nothing(failed: Transient) -> bool:
    return isinstance(failed, Busy) or (isinstance(failed, ConnectionFailed) and not failed.sent)


def _delay(tries: int, failed: Transient) -> float:
    """Full jitter, on top of what the server asks for."""
    jitter = random.uniform(0, min(_LONGEST_DELAY, _FIRST_DELAY * 2.0 ** min(tries, 10)))
    return min(failed.retry_after_seconds or 0.0, _LONGEST_RETRY_AFTER) + jitter


def _short(failed: KslateError) -> str:
    return f"{failed.error}: {failed.message}" if failed.error else failed.message


def _connection_failed(failed: httpx.TransportError, server: str) -> ConnectionFailed:
    sent = not isinstance(failed, _NEVER_SENT)
    what = "the connection broke before the answer came" if sent else "no connection"
    error = ConnectionFailed(f"{what}: {server}: {str(failed) or type(failed).__name__}")
    error.sent = sent
    return error


def _retry_after(header: str | None) -> float | None:
    with contextlib.suppress(TypeError, ValueError):
        return max(float(header), 0.0)  # type: ignore[arg-type]
    return None


def _printable(key: str) -> str:
    if not (1 <= len(key) <= 128 and key.isascii() and key.isprintable()):
        raise Malformed("an idempotency key has 1 to 128 printable ASCII characters")
    return key


def _split(seconds: float) -> httpx.Timeout:
    """`seconds` for all the phases of a request together; httpx counts each by itself."""
    return httpx.Timeout(pool=seconds / 5, connect=seconds / 5, write=seconds / 5, read=seconds * 2 / 5)
