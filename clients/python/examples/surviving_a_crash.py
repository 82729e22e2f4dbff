"""A crash, staged: worker 1 claims a task, saves its checkpoint and is killed; worker 2 takes over and learns what changed.

Needs a server with the keys of the manual (diag-token, w1-token, w2-token) or others given as options. Worker 1 is a process
of its own, killed with SIGKILL: nothing of it tidies up.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time

from kslate import Client, Held

CHECKPOINT = {
    "goal": "drain node-7",
    "progress": "cordoned; 4 of 11 pods evicted",
    "decisions": "evict in batches of 4",
    "open_questions": "none",
}


def worker_1(client: Client, record: str, lease_seconds: int) -> None:
    """Claims, saves a checkpoint, and is at work on the other seven pods when it dies."""
    claim = client.claim(record, "remediation", lease_seconds=lease_seconds)
    print(f"worker-1  claim      owner={claim.owner}", flush=True)
    client.checkpoint_save(record, CHECKPOINT)
    print("worker-1  checkpoint 4 of 11 pods evicted", flush=True)
    time.sleep(3600)


def worker_2(client: Client, record: str) -> None:
    """Claims as soon as the lease of the dead is over."""
    try:
        claim = client.claim(record, "remediation")
    except Held as held:
        time.sleep(held.retry_after_seconds or 1)
        worker_2(client, record)
    else:
        print(f"worker-2  claim      took_over_from={claim.took_over_from}")


def stage(options: argparse.Namespace) -> None:
    diagnoser = Client(options.server, options.diagnoser)
    w2 = Client(options.server, options.worker_2)
    record = options.record
    with diagnoser, w2:
        if not diagnoser.create(record).created:
            sys.exit(f"{record} is there already; the crash needs a new record: name another")
        plan, reason = "evict all pods of node-7, four at a time", "node-7 fails its health checks"
        diagnoser.write(record, "planned_action", plan, expected_version=0, evidence=reason)

        # Worker 1: this file again, as another process.
        with subprocess.Popen([sys.executable, *sys.argv, "--as-worker-1"], stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout
            for _ in ("claim", "checkpoint"):
                print(process.stdout.readline(), end="")
            process.kill()
        print("worker-1  ...dies")

        try:
            w2.claim(record, "remediation")
        except Held as held:
            print(f"worker-2  claim      HELD by {held.owner}")
        plan, reason = "leave the pods where they are", "eviction caused a second outage on node-4"
        diagnoser.write(record, "planned_action", plan, expected_version=1, evidence=reason)
        print("diagnoser changed the plan while worker-1 was gone")
        worker_2(w2, record)

        # What the replacement wakes up to.
        checkpoint = w2.checkpoint_load(record)
        print(f"role: {checkpoint.role}")
        print(f"checkpoint at record_version {checkpoint.record_version}:")
        print("  " + json.dumps(checkpoint.document, indent=2).replace("\n", "\n  "))
        print("changed since this checkpoint:")
        for change in checkpoint.changed_fields:
            print(f"  {change.field:<20} {f'v{change.version}':<5} {change.author}")
            if change.evidence:
                print(f"      evidence: {change.evidence}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("record", nargs="?", default="incidents/inc-111", help="a record that is not there yet (%(default)s)")
    parser.add_argument("--server", help="the server (KSLATE_SERVER, else http://127.0.0.1:8080)")
    parser.add_argument("--lease", type=int, default=3, metavar="SECONDS", help="how long worker 1 claims for (%(default)s)")
    parser.add_argument("--diagnoser", default="diag-token", metavar="TOKEN", help="(%(default)s)")
    parser.add_argument("--worker-1", default="w1-token", metavar="TOKEN", help="(%(default)s)")
    parser.add_argument("--worker-2", default="w2-token", metavar="TOKEN", help="(%(default)s)")
    parser.add_argument("--as-worker-1", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.as_worker_1:
        worker_1(Client(options.server, options.worker_1), options.record, options.lease)
    else:
        stage(options)


if __name__ == "__main__":
    main()
