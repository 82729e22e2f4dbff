"""The shim: its share of what pgbench reaches with the same function, what it adds, what it costs."""

from itertools import count, cycle
from statistics import median
from time import sleep

from bench.floor import CLIENTS
from bench.operations import fill, operation, side, with_enough
from bench.peers import install
from bench.shim import Shim
from bench.turns import Measured, by_turns


def measure(cluster, report, quick):
    """The part `http` of the report."""
    with_wrk()
    table = report.section(
        "HTTP, against the function called from pgbench",
        "wrk over kept connections against `kslate serve` on the same cores, by turns with pgbench calling the same function "
        "with as many clients; the pool has 16 connections. Wanted: at least 0.60. CPU is the shim's own per request; what it adds "
        "is the difference of the medians of latency, wanted under 0.3 ms with one client. healthz calls no function: what it takes, "
        "every request takes.",
        ["operation", "sync", "clients", "tps", "of pgbench", "p50 ms", "p99 ms", "adds ms", "shim cpu µs"],
    )
    rounds, clients = (1, (8,)) if quick else (3, CLIENTS)
    for sync, names in ((False, ("write", "get") if quick else ("claim", "write", "save", "load", "get")), (True, ("write",))):
        with Shim(cluster, sync) as shim:
            if not sync:
                without_database(shim, clients, table)
            for name in names:
                op = operation(name).quick() if quick else operation(name)
                for row in with_enough(
                    op, lambda op: against_pgbench(cluster, shim, op, sync, rounds, clients, report.progress), report.progress
                ):
                    table.row(*row)
    with Shim(cluster) as shim:
        memory(cluster, shim, report, 1 if quick else 8)


def with_wrk():
    wrong = install.apt("wrk", "wrk")
    if wrong:
        raise SystemExit(f"HTTP is measured with wrk, which could not be installed: {wrong}")


class Wrk:
    """wrk as a side: each turn is a run of a second, with records of its own, over new connections."""

    def __init__(self, shim, op, clients, places):
        self.shim, self.op, self.clients, self.places, self.loads = shim, op, clients, places, []

    def begin(self, _):
        pass

    def turn(self, _):
        self.loads.append(self.shim.load(self.op.name, self.op.variables(min(self.clients, 2), next(self.places)), self.clients))

    def runs(self):
        return True

    def abandon(self):
        pass

    def end(self, rounds):
        loads = self.loads[:rounds]
        return Measured([load.tps for load in loads], *(median(getattr(load, what) for load in loads) for what in ("p50", "p99", "cpu")))


def without_database(shim, all_clients, table):
    op = operation("get")
    for clients in all_clients:
        load = shim.load("healthz", op.variables(min(clients, 2)), clients)
        table.row("healthz", None, clients, load.tps, None, load.p50, load.p99, None, load.cpu)


def against_pgbench(cluster, shim, op, sync, rounds, all_clients, progress):
    """The rows of the table for an operation."""
    fill(cluster, op, "kslate")
    # Where a lease must have lapsed, all parts but one are wrk's, which begins each turn with another, and the last is pgbench's.
    places = cycle(range(op.slices - 1)) if op.lapse else count()
    rows = []
    by_turns([Wrk(shim, op, 32, places)], 1)  # the server's connections make their plans
    for clients in all_clients:
        direct = side(cluster, op, None, clients, sync, op.slices - 1 if op.lapse else next(places))
        sleep(op.lapse)
        through, direct = by_turns([Wrk(shim, op, clients, places), direct], rounds, 0.5)
        ratio, adds = through.to(direct), through.p50 - direct.p50
        rows.append((op.name, "on" if sync else "off", clients, through.tps, ratio, through.p50, through.p99, adds, through.cpu))
        progress(f"HTTP {op.name}, {clients} connections: {through.tps:.0f}/s, {ratio:.2f} of pgbench, adds {adds:.2f} ms")
    return rows


def memory(cluster, shim, report, seconds, requests=None):
    """Resident memory under a load of reads, loads and saves of 64 KiB: as many requests as are wanted, or so many seconds."""
    table = report.section(
        "Memory of the shim",
        "32 connections; one request in ten saves a checkpoint of 64 KiB, one in ten loads one. Wanted: under 64 MiB after a million "
        "requests (`make bench ONLY=memory` makes a million).",
        ["requests", "resident MiB"],
    )
    op = operation("get")
    fill(cluster, op, "kslate")
    table.row(0, shim.resident())
    done = 0
    while True:
        done += shim.load("mixed", op.variables(2), 32, seconds).requests
        table.row(done, shim.resident())
        report.progress(f"HTTP: {shim.resident():.1f} MiB resident after {done} requests")
        # The documents of so many saves would fill the disk.
        fill(cluster, op, "kslate")
        if len(table.rows) > 2 and done >= (requests or 0):
            break


def million(cluster, report, quick):
    """The part `memory`: the same for a million requests; not among the parts that are measured unasked."""
    with_wrk()
    with Shim(cluster, sync=False) as shim:
        memory(cluster, shim, report, 5 if quick else 20, 20_000 if quick else 1_000_000)
