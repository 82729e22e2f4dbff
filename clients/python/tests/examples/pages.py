"""Plays the Python of a Markdown page as its reader would, from top to bottom.

`python` blocks run in one interpreter; `bash` blocks, which are commands for the virtual environment that the package is installed
in, in a bash each. (The `sh` and `sql` blocks of docs/ are run by tests/tests/docs.rs, and use other records.) A `text` block right
after one is what it prints; `…` in it stands for anything.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

from support.deployment import ROOT, Deployment

READERS_SERVER = "http://127.0.0.1:8080"
FENCED = re.compile(r"^```(\w*)\n(.*?)^```$(?:\n```text\n(.*?)^```$)?", re.MULTILINE | re.DOTALL)


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
    names: dict[str, object] = {"__name__": "__main__"}
    with mock.patch.dict(os.environ, deployment.environment(token), clear=True):
        for block in blocks(page):
            at = f"{page.name}:{block.line}"
            # Put in at its own line, so that a traceback tells where on the page it happened.
            code = "\n" * block.line + block.text.replace(READERS_SERVER, deployment.server)
            if block.language == "python":
                printed = io.StringIO()
                with contextlib.redirect_stdout(printed):
                    exec(compile(code, str(page), "exec"), names)
                said = printed.getvalue()
            elif block.language == "bash":
                said = _bash(code)
            else:
                continue
            played += 1
            assert block.prints is None or _matches(said, block.prints), f"{at} prints\n{said}\nnot\n{block.prints}"
    return played


def _bash(text: str) -> str:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", text],
        cwd=ROOT,
        env=os.environ | {"PATH": path},
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
