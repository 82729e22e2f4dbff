"""A loopback proxy that knows HTTP well enough to cut a connection at a chosen moment of a chosen request."""

from __future__ import annotations

import enum
import socket
import socketserver
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from io import BufferedIOBase
from types import TracebackType


class Fate(enum.Enum):
    """What becomes of a request."""

    PASS = "passed on, and its answer too"
    CUT_AFTER_DELIVERY = "delivered whole; the connection is cut while the server is at it"
    CUT_AFTER_ANSWER = "delivered and answered; the answer is thrown away and the connection cut"


@dataclass(frozen=True)
class Seen:
    """A request that came through, and the status that the server answered (None: the answer was not waited for)."""

    method: str
    path: str
    headers: dict[str, str]
    fate: Fate
    status: int | None


@dataclass
class Proxy:
    """`with Proxy(port) as proxy`: passes on to 127.0.0.1:port what comes to `proxy.server`, as `decide` says."""

    upstream: int
    decide: Callable[[str, str], Fate] = lambda method, path: Fate.PASS
    seen: list[Seen] = field(default_factory=list)

    def __enter__(self) -> Proxy:
        proxy = self

        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                proxy._serve(self.rfile, self.connection)

        class Server(socketserver.ThreadingTCPServer):
            daemon_threads = True
            block_on_close = False

            def handle_error(self, request: object, client_address: object) -> None:
                """The other side went away; its own test says whether that was right."""

        self._server = Server(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def server(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def requests(self, method: str, ending: str) -> list[Seen]:
        """The requests seen so far with that method whose path ends so."""
        return [seen for seen in self.seen if seen.method == method and seen.path.endswith(ending)]

    def _serve(self, client: BufferedIOBase, connection: socket.socket) -> None:
        """One connection of a client, which carries one request: both sides are told to close after the answer."""
        if head := _head(client):
            request, headers = head
            method, path = request.split()[:2]
            body = client.read(int(headers.get("content-length", 0)))
            fate = self.decide(method, path)
            with socket.create_connection(("127.0.0.1", self.upstream), timeout=60) as server:
                lines = [
                    request,
                    *(f"{key}: {value}" for key, value in headers.items() if key != "connection"),
                    "connection: close",
                ]
                server.sendall(("\r\n".join(lines) + "\r\n\r\n").encode() + body)
                answer = b"" if fate is Fate.CUT_AFTER_DELIVERY else _all_of(server)
            status = int(answer.split()[1]) if answer else None
            self.seen.append(Seen(method, path.partition("?")[0], headers, fate, status))
            if fate is Fate.PASS:
                connection.sendall(answer)
            connection.shutdown(socket.SHUT_RDWR)


def _head(stream: BufferedIOBase) -> tuple[str, dict[str, str]] | None:
    request = stream.readline().decode().strip()
    if not request:
        return None
    headers = {}
    while line := stream.readline().decode().strip():
        key, _, value = line.partition(":")
        headers[key.lower()] = value.strip()
    return request, headers


def _all_of(server: socket.socket) -> bytes:
    answer = b""
    while piece := server.recv(65536):
        answer += piece
    return answer
