"""Plays the Python of a Markdown page as its reader would, from top to bottom.

`python` blocks run in one interpreter; `bash` blocks, which are commands for the virtual environment that the package is
installed in, in a bash each; `pip install` itself is test_installation.py's. (The `sh` and `sql` blocks of docs/ are run by
tests/tests/docs.rs, and use other records.) A `text` block right after one is what it prints; `…` in it stands for anything.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from support.deployment import ROOT, Deployment

READERS_SERVER = "http://127.0.0.1:8080"
FENCED = re.compile(r"^```(\w*)\n(.*?)^```$(?:\n```text\n(.*?)^```$)?", re.MULTILINE | re.DOTALL)
INSTALLS = re.compile(r"^pip install .*$", re.MULTILINE)


@dataclass(frozen=True)
class Block:
    language: str
    text: str
    prints: str | None
    line: int


def blocks(page: Path) -> Iterator[Block]:
    text = page.read_text()
    for found in FENCED.finditer(text):
        yield Block(found[1], found[2], found[3], text.count("\n", 0, found.start()) + 1)


def play(page: Path, deployment: Deployment, token: str) -> int:
    """Plays the page with that token in KSLATE_APIKEY, and gives how many blocks it played."""
    played = 0
    environment = deployment.environment(token)
    with _Interpreter(page, environment) as interpreter:
        for block in blocks(page):
            code = block.text.replace(READERS_SERVER, deployment.server)
            if block.language == "python":
                # At its own line, so that a traceback tells where on the page it happened.
                said = interpreter.run("\n" * block.line + code)
            elif block.language == "bash":
                said = _bash(INSTALLS.sub("", code), environment)
            else:
                continue
            played += 1
            at = f"{page.name}:{block.line}"
            assert block.prints is None or _matches(said, block.prints), f"{at} prints\n{said}\nnot\n{block.prints}"
    return played


class _Interpreter:
    """A Python that stays open through the page."""

    PROGRAM = """
import contextlib, io, json, sys
names = {"__name__": "__main__"}
for line in sys.stdin:
    page, code = json.loads(line)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, page, "exec"), names)
    print(json.dumps(printed.getvalue()), flush=True)
"""

    def __init__(self, page: Path, environment: dict[str, str]) -> None:
        self._page = page
        self._process = subprocess.Popen(
            [sys.executable, "-c", self.PROGRAM], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def __enter__(self) -> _Interpreter:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._process.communicate()

    def run(self, code: str) -> str:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps([str(self._page), code]) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        assert answer, "the page's Python raised; its traceback is on stderr"
        return str(json.loads(answer))


def _bash(text: str, environment: dict[str, str]) -> str:
    path = f"{Path(sys.executable).parent}:{environment['PATH']}"
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", text],
        cwd=ROOT,
        env=environment | {"PATH": path},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, f"{text}\n{done.stdout}{done.stderr}"
    return done.stdout


def _matches(said: str, expected: str) -> bool:
    pattern = ".*".join(re.escape(piece) for piece in expected.rstrip().split("…"))
    return re.fullmatch(pattern, said.rstrip(), re.DOTALL) is not None
