"""`python3 -m bench [PART…]`, as scripts/bench calls it: measures, and writes the report."""

import os
import sys

from bench import contention, floor, growth, http
from bench.cluster import Cluster
from bench.peers import run as peers
from bench.report import Report

PARTS = {
    "sql": floor.measure, "http": http.measure, "growth": growth.measure, "contention": contention.measure, "peers": peers.measure,
}
# Measured only where they are named.
NAMED = {"memory": http.million}


def main(names):
    unknown = [name for name in names if name not in {**PARTS, **NAMED}]
    if unknown:
        raise SystemExit(f"no part {' '.join(unknown)}; there are: {' '.join([*PARTS, *NAMED])}")
    quick = bool(os.environ.get("QUICK"))
    report = Report(quick, "-".join(names))
    report.progress("making a cluster")
    with Cluster() as cluster:
        report.about(cluster)
        for name in names or PARTS:
            {**PARTS, **NAMED}[name](cluster, report, quick)
    report.progress(f"the report: {os.path.relpath(report.write())}")


main(sys.argv[1:])
