"""A decision may take longer than the lease, as long as its process runs; one whose process slept is told, and refused."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from support.deployment import Deployment
from support.waiting import until

LEASE = 1
HERE = Path(__file__).resolve().parent


@contextmanager
def deciding(deployment: Deployment, record: str, log: Path, block: float) -> Iterator[subprocess.Popen[bytes]]:
    """An agent process in the middle of its decision."""
    process = subprocess.Popen(
        [sys.executable, "-m", "under_fire.one_decision", record, log, str(LEASE), str(block)],
        cwd=HERE.parent,
        env=deployment.environment("w1-token"),
    )
    try:
        until("the agent decides", lambda: process.poll() is not None or notes(log, "deciding"))
        assert process.poll() is None
        yield process
    finally:
        process.kill()
        process.wait()


def notes(log: Path, event: str) -> list[dict[str, Any]]:
    lines = log.read_text().splitlines() if log.exists() else []
    return [note for note in map(json.loads, lines) if note["event"] == event]


def refusals(log: Path) -> list[str]:
    return [note["answer"]["error"] for note in notes(log, "answered") if note["status"] >= 400]


def history(deployment: Deployment, record: str) -> list[tuple[str, str | None, str]]:
    rows = deployment.call("GET", f"/v1/records/{record}/history")["history"]
    return [(row["op"], row["took_over_from"], row["author"]) for row in rows]


def test_a_decision_of_five_leases_keeps_its_claim(deployment: Deployment, record: str, tmp_path: Path) -> None:
    log = tmp_path / "log"
    begun = time.monotonic()
    with deciding(deployment, record, log, block=5 * LEASE) as process:
        assert process.wait(60) == 0
    assert time.monotonic() - begun >= 5 * LEASE
    w1 = "apikey:remediator/worker-1"
    assert [row for row in history(deployment, record) if row[2] == w1] == [
        ("claim", None, w1),
        ("append", None, w1),
        ("complete", None, w1),
    ]
    renewals = [note for note in notes(log, "sent") if note["path"].endswith("/renew")]
    assert len(renewals) >= 10
    assert not notes(log, "told")


def test_a_process_that_slept_for_three_leases_is_fenced(deployment: Deployment, record: str, tmp_path: Path) -> None:
    log = tmp_path / "log"
    w2, claim_path = "apikey:remediator/worker-2", f"/v1/records/{record}/fields/remediation/claim"
    with deciding(deployment, record, log, block=600) as process:
        process.send_signal(signal.SIGSTOP)
        stopped = time.monotonic()

        def claim_is_live() -> bool:
            return bool(deployment.call("GET", f"/v1/records/{record}/fields/remediation")["claim"]["live"])

        until("its lease is over", lambda: not claim_is_live())
        taken = deployment.call("POST", claim_path, {"lease_seconds": 600}, token="w2-token")
        until("three leases have gone by", lambda: time.monotonic() - stopped > 3 * LEASE)
        process.send_signal(signal.SIGCONT)
        (told,) = until("it was told and refused", lambda: notes(log, "refused"))
        assert (told["reason"], told["owner"]) == ("taken_over", w2)
        assert notes(log, "told")[0]["live"] is False
        # Through the loop nothing more of that decision is written: it has gone back to claiming, and waits for its turn.
        until("it claims again", lambda: "HELD" in refusals(log))
        process.terminate()
        assert process.wait(30) == 0
    assert taken["took_over_from"] == "apikey:remediator/worker-1"
    assert history(deployment, record)[1:] == [
        ("claim", None, "apikey:remediator/worker-1"),
        ("takeover", "apikey:remediator/worker-1", w2),
    ]
