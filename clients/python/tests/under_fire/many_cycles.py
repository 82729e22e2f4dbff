"""An agent that lives long: python -m under_fire.many_cycles RECORD CYCLE…, prints what it takes up at each of those cycles.

Threads and files are the least of the cycles just before: a renewal's own connection comes and goes, a leak stays.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import threading
from collections import deque
from pathlib import Path

from kslate import Agent, Client, Fields, Write, run

WINDOW = 900


def memory() -> int:
    """In KiB."""
    gc.collect()
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(status["VmRSS"].split()[0])


def main() -> None:
    record, *marks = sys.argv[1:]
    wanted = {int(mark) for mark in marks}
    cycle = 0
    threads: deque[int] = deque(maxlen=WINDOW)
    files: deque[int] = deque(maxlen=WINDOW)

    def decide(fields: Fields) -> Write:
        nonlocal cycle
        cycle += 1
        threads.append(threading.active_count())
        files.append(len(os.listdir("/proc/self/fd")))
        if cycle in wanted:
            print(json.dumps({"rss": memory(), "threads": min(threads), "files": min(files), "most": max(files)}), flush=True)
        return Write("status", "mitigating", evidence=f"cycle {cycle}")

    def account(_: Fields) -> dict[str, object]:
        return {"goal": "go on", "decisions": [], "progress": cycle, "open_questions": []}

    with Client() as client:
        run(Agent(decide, account), client, record=record, claim_field="remediation", max_cycles=max(wanted))


if __name__ == "__main__":
    main()
