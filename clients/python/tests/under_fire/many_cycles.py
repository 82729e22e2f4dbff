"""An agent that lives long: python -m under_fire.many_cycles RECORD CYCLE…, prints what it takes up at each of those cycles."""

from __future__ import annotations

import gc
import json
import os
import sys
import threading
from pathlib import Path

from kslate import Agent, Client, Fields, Write, run


def taken_up() -> dict[str, int]:
    """Memory in KiB, threads, and open files, which sockets are."""
    gc.collect()
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return {
        "rss": int(status["VmRSS"].split()[0]),
        "threads": threading.active_count(),
        "files": len(os.listdir("/proc/self/fd")),
    }


def main() -> None:
    record, *marks = sys.argv[1:]
    wanted = {int(mark) for mark in marks}
    cycle = 0

    def decide(fields: Fields) -> Write:
        nonlocal cycle
        cycle += 1
        if cycle in wanted:
            print(json.dumps(taken_up()), flush=True)
        return Write("status", "mitigating", evidence=f"cycle {cycle}")

    def account(_: Fields) -> dict[str, object]:
        return {"goal": "go on", "decisions": [], "progress": cycle, "open_questions": []}

    with Client() as client:
        run(Agent(decide, account), client, record=record, claim_field="remediation", max_cycles=max(wanted))


if __name__ == "__main__":
    main()
