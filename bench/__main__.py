"""`python3 -m bench [PART…]`, as scripts/bench calls it: measures, and writes the report."""

import os
import signal
import sys

from bench import contention, floor, growth, http
from bench.cluster import Cluster
from bench.operations import OPERATIONS
from bench.peers import run as peers
from bench.report import Report

PARTS = {
    "sql": floor.measure,
    "http": http.measure,
    "growth": growth.measure,
    "contention": contention.measure,
    "peers": peers.measure,
}
# Measured only where they are named: sql/claim is one operation of sql.
NAMED = {"memory": http.million, **{f"sql/{op.name}": floor.one(op) for op in OPERATIONS}}


def main(names):
    known = {**PARTS, **NAMED}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise SystemExit(f"no part {' '.join(unknown)}; there are: {' '.join(known)}")
    quick = bool(os.environ.get("QUICK"))
    report = Report(quick, "-".join(names).replace("/", "-"))
    report.progress("making a cluster")
    with Cluster() as cluster:
        report.about(cluster)
        for name in names or PARTS:
            known[name](cluster, report, quick)
    report.progress(f"the report: {os.path.relpath(report.write())}")


# Whatever ends the benchmark also takes its cluster away.
signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
main(sys.argv[1:])
