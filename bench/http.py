"""The shim: its share of what pgbench reaches with the same function, what it adds, what it costs."""

from statistics import median

from bench.floor import CLIENTS
from bench.operations import fill, once, operation
from bench.peers import install
from bench.shim import Shim


def measure(cluster, report, quick):
    """The part `http` of the report."""
    with_wrk()
    table = report.section(
        "HTTP, against the function called from pgbench",
        "wrk over kept connections against `kslate serve` on the same cores, in alternation with pgbench calling the same function "
        "with as many clients; the pool has 16 connections. Wanted: at least 0.60. CPU is the shim's own per request; what it adds "
        "is the difference of the medians of latency, wanted under 0.3 ms with one client.",
        ["operation", "sync", "clients", "tps", "of pgbench", "p50 ms", "p99 ms", "adds ms", "shim cpu µs"],
    )
    rounds, clients = (1, (8,)) if quick else (2, CLIENTS)
    for sync, names in ((False, ("write", "get") if quick else ("claim", "write", "save", "load", "get")), (True, ("write",))):
        with Shim(cluster, sync) as shim:
            for name in names:
                against_pgbench(cluster, shim, operation(name), sync, rounds, clients, table, report)
    with Shim(cluster) as shim:
        memory(cluster, shim, report, 1 if quick else 8)


def with_wrk():
    wrong = install.apt("wrk", "wrk")
    if wrong:
        raise SystemExit(f"HTTP is measured with wrk, which could not be installed: {wrong}")


def against_pgbench(cluster, shim, op, sync, rounds, all_clients, table, report):
    fill(cluster, op, "kslate")
    place = 0

    def http(clients):
        nonlocal place
        place += 1
        return shim.load(op.name, op.variables(min(clients, 2), place), clients)

    http(32)  # the server's connections make their plans
    for clients in all_clients:
        pairs = []
        for _ in range(rounds):
            load = http(clients)
            place += 1
            pairs.append((load, once(cluster, op, None, clients, sync, 0.65, place)))
        ratio = median(load.tps / direct.tps for load, direct in pairs)
        adds = median(load.p50 - direct.p50 for load, direct in pairs)
        tps, p50, p99, cpu = (median(getattr(load, what) for load, _ in pairs) for what in ("tps", "p50", "p99", "cpu"))
        table.row(op.name, "on" if sync else "off", clients, tps, ratio, p50, p99, adds, cpu)
        report.progress(f"HTTP {op.name}, {clients} connections: {tps:.0f}/s, {ratio:.2f} of pgbench, adds {adds:.2f} ms")


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
