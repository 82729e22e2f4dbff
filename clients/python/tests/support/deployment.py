"""A PostgreSQL cluster and a `bin/kslate serve` of the tests' own, made by the repository's scripts."""

from __future__ import annotations

import itertools
import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

import httpx

from .waiting import until

ROOT = Path(__file__).resolve().parents[4]
WORKERS = 20

# The manual's tokens, and as many workers as the storm has.
TOKENS = {
    "diag-token": "diagnoser",
    **{f"w{number}-token": f"remediator/worker-{number}" for number in range(1, WORKERS + 1)},
}
ADMIN_TOKEN = "admin-token"


def quiet_environment() -> dict[str, str]:
    """The environment without what would point kslate at somebody's own server or database."""
    return {key: value for key, value in os.environ.items() if not key.startswith("KSLATE_") and key != "DATABASE_URL"}


def script(name: str, *arguments: str) -> str:
    """Runs a script of the repository to its end and gives what it printed; where it fails, so does the test."""
    done = subprocess.run(
        [ROOT / "scripts" / name, *arguments],
        cwd=ROOT,
        env=quiet_environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"scripts/{name} {' '.join(arguments)} ended with {done.returncode}\n{done.stdout}"
    return done.stdout.strip()


class Deployment:
    """A private cluster with the classes of `classes/`, and a server on a free port that it keeps over restarts.

    All of it is gone when this process is, however that ends: `scripts/cluster watch` holds the other end of a pipe.
    """

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        # PostgreSQL's user must get in.
        self.folder = Path(tempfile.mkdtemp(prefix="kslate-python-", dir="/tmp"))
        self.folder.chmod(0o755)
        self._watch = subprocess.Popen(
            [ROOT / "scripts/cluster", "watch", self.folder],
            cwd=ROOT,
            env=quiet_environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self._process: subprocess.Popen[bytes] | None = None
        self._port = 0
        self._database = "kslate"
        self.keys = self.folder / "keys.yaml"
        self.log = self.folder / "server.log"
        lines = [f"{token}: {name}" for token, name in TOKENS.items()]
        self.keys.write_text("\n".join([*lines, f"{ADMIN_TOKEN}: {{ identity: admin, admin: true }}", ""]))
        self.start_database()
        script("database", "--private", "kslate_server", self._url())
        self.psql("create database kslate_template template kslate", database="postgres")
        self.start_server()
        self._admin = httpx.Client(base_url=self.server, headers={"Authorization": f"Bearer {ADMIN_TOKEN}"}, timeout=30)

    def __enter__(self) -> Deployment:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Ends the server and removes the cluster."""
        self._admin.close()
        if self._process:
            self._process.kill()
            self._process.wait()
        assert self._watch.stdin
        self._watch.stdin.close()
        self._watch.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def server(self) -> str:
        """`http://127.0.0.1:<port>`."""
        return f"http://127.0.0.1:{self._port}"

    @property
    def port(self) -> int:
        return self._port

    def token(self, identity: str) -> str:
        """The token of `diagnoser` or `remediator/worker-7`."""
        return next(token for token, name in TOKENS.items() if name == identity)

    def environment(self, token: str) -> dict[str, str]:
        """What a program or an example needs in its environment."""
        return quiet_environment() | {"KSLATE_SERVER": self.server, "KSLATE_APIKEY": token}

    # The server

    def start_server(self) -> None:
        """Starts it, on the port of before; returns when it is ready."""
        program = ROOT / "bin/kslate"
        assert program.exists(), "no bin/kslate: run `make build`, or the tests with `make test`"
        begun = self.log.stat().st_size if self.log.exists() else 0
        with self.log.open("ab") as log:
            process = subprocess.Popen(
                [program, "serve", "--listen", f"127.0.0.1:{self._port}"],
                env=quiet_environment()
                | {
                    "DATABASE_URL": self._url("kslate_server"),
                    "KSLATE_APIKEYS": str(self.keys),
                    "KSLATE_LOG": "warn",
                },
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        self._process = process
        assert self._watch.stdin
        self._watch.stdin.write(f"{process.pid}\n".encode())
        self._watch.stdin.flush()

        def ready() -> bool:
            told = self.log.read_text()[begun:]
            assert process.poll() is None, f"the server ended with {process.returncode}:\n{told}"
            address = re.search(r"http://127\.0\.0\.1:(\d+)", told)
            if not address:
                return False
            self._port = int(address[1])
            return self._is_ready()

        until("the server is ready", ready)

    def _is_ready(self) -> bool:
        try:
            return httpx.get(f"{self.server}/readyz", timeout=5).status_code == 200
        except httpx.TransportError:
            return False

    def stop_server(self, how: int = signal.SIGTERM) -> None:
        """Ends it with a signal and waits for its end."""
        assert self._process
        self._process.send_signal(how)
        self._process.wait(60)
        self._process = None

    def restart_server(self, how: int = signal.SIGTERM) -> None:
        self.stop_server(how)
        self.start_server()

    # The database

    def start_database(self) -> None:
        """Starts it; returns when it answers."""
        script("cluster", "start", str(self.folder))

    def stop_database(self, *, immediate: bool = False) -> None:
        """Stops it: as `pg_ctl -m fast` does, or `-m immediate`, which is a crash with a warning."""
        if not immediate:
            script("cluster", "stop", str(self.folder))
            return
        home = script("cluster", "home", str(self.folder))
        pid = int(Path(home, "data/postmaster.pid").read_text().split()[0])
        os.kill(pid, signal.SIGQUIT)
        until("the database is stopped", lambda: not Path(f"/proc/{pid}").exists() or _is_zombie(pid))

    def _url(self, role: str = "kslate", database: str | None = None) -> str:
        return script("cluster", "url", str(self.folder), role, database or self._database)

    def _psql(self, database: str | None = None) -> subprocess.Popen[str]:
        return subprocess.Popen(
            ["bash", "-c", '. scripts/lib.sh; use_postgres; sql "$@"', "psql", self._url(database=database)],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def psql(self, query: str, *, database: str | None = None) -> str:
        """What a query answers to the superuser `kslate`, a row a line; an error fails the test."""
        with self._psql(database) as psql:
            answer, _ = psql.communicate(query)
        assert psql.returncode == 0, query
        return answer.strip()

    @contextmanager
    def nobody_can_write(self) -> Iterator[None]:
        """Holds a lock that every change of a record waits for, until the block ends or the database does."""
        with self._psql() as psql:
            assert psql.stdin
            assert psql.stdout
            psql.stdin.write("begin; lock table kslate.record in exclusive mode; select 'locked';\n")
            psql.stdin.flush()
            assert psql.stdout.readline().strip() == "locked"
            try:
                yield
            finally:
                psql.stdin.close()

    def waiters(self) -> int:
        """How many of the server's requests wait for a lock now."""
        return int(
            self.psql("select count(*) from pg_stat_activity where usename = 'kslate_server' and wait_event_type = 'Lock'")
        )

    def anew(self) -> None:
        """A database with nothing in it but the classes of `classes/`; the server stays on its port."""
        self.stop_server()
        self._database = f"fresh_{next(self._numbers)}"
        self.psql(f"create database {self._database} template kslate_template", database="postgres")
        self.start_server()

    # What tests begin with

    def call(self, method: str, path: str, body: Any = None, *, token: str = "diag-token") -> Any:
        """An answer's JSON without the package under test; anything but 2xx fails the test; a read waits until 503 is over."""
        content = {"content": body} if isinstance(body, str) else {"json": body} if body is not None else {}

        def ask() -> httpx.Response | None:
            answer = self._admin.request(method, path, headers={"Authorization": f"Bearer {token}"}, **content)
            return None if method == "GET" and answer.status_code == 503 else answer

        answer = until(f"{method} {path} is answered", ask)
        assert answer.is_success, f"{method} {path}: {answer.status_code} {answer.text}"
        return answer.json()

    def metrics(self) -> str:
        """The server's own counts, in Prometheus' form."""
        return self._admin.get("/metrics").text

    def apply_class(self, definition: str) -> str:
        """Applies a class, in YAML, and gives its name."""
        name = re.search(r"^class: *(\S+)", definition, re.MULTILINE)
        assert name, definition
        self._admin.put(
            f"/v1/classes/{name[1]}", content=definition, headers={"Content-Type": "application/yaml"}
        ).raise_for_status()
        return name[1]

    def own_class(self, like: str = "incidents") -> str:
        """A new class like one of `classes/`, so that claim next meets nobody else's records; gives its name."""
        source = (ROOT / "classes" / f"{like}.yaml").read_text()
        return self.apply_class(re.sub(r"^class: *\S+", f"class: {like}-{next(self._numbers)}", source, flags=re.MULTILINE))

    def own_record(self, class_name: str = "incidents", fields: dict[str, Any] | None = None) -> str:
        """A new record, made by the diagnoser; gives its name."""
        record = f"{class_name}/own-{next(self._numbers)}"
        self.call("PUT", f"/v1/records/{record}", {"fields": fields} if fields else {})
        return record


def _is_zombie(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True
