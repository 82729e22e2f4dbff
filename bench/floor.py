"""Our functions against the floor: the same row changes as hand-written SQL, by turns. Ratios are medians of the rounds."""

import json
from dataclasses import dataclass, replace
from itertools import count
from time import sleep

from bench.operations import FIRST, OPERATIONS, TABLES, fill, side, with_enough
from bench.pgbench import transaction
from bench.turns import Measured, by_turns

CLIENTS = (1, 8, 32)


@dataclass
class Comparison:
    """An operation with so many clients, ours and the floor by turns."""

    clients: int
    sync: bool
    ours: Measured
    floor: Measured

    @property
    def ratio(self):
        return self.ours.to(self.floor)

    @property
    def cpu(self):
        return self.ours.cpu / self.floor.cpu


def same_changes(cluster, op):
    """Each way of the floor leaves the rows that ours leaves, and reads what ours reads, but for clocks and random numbers."""
    if op.reads:
        fill_together(cluster, op)
        left = {way: read(cluster, op, way) for way in (None, *op.ways)}
    else:
        left = {}
        for way in (None, *op.ways):
            fill(cluster, replace(op, records=32), "floor" if way else "kslate", tidied=False)
            transaction(cluster, op.script(way), op.variables(1))
            left[way] = rows(cluster, "floor" if way else "kslate")
    for way in op.ways:
        if left[way] != left[None]:
            raise SystemExit(f"the floor's {op.name}/{way} does not do what ours does:\n{left[way]}\nours:\n{left[None]}")


def fill_together(cluster, op):
    """The same times in both schemas."""
    calls = "".join(f"call bench.fill('{schema}', 32, {op.entries}, {op.held}, '{{}}');" for schema in ("kslate", "floor"))
    cluster.sql(f"begin; {calls} commit")


def read(cluster, op, way):
    statement = op.script(way).split("\\set v")[1].split("\n", 1)[1].replace("\\gset", "").replace(":n", str(FIRST))
    answer = cluster.sql(f"set role bench; select to_json(answer) from ({statement}) answer")
    # What is JSON put together as text is JSON all the same.
    return {
        name: json.loads(value) if isinstance(value, str) and value[:1] == "[" else value
        for name, value in json.loads(answer).items()
    }


def rows(cluster, schema):
    """All rows of the record that was changed, without times and random numbers."""

    def plain(row):
        return {name: value is not None if name.endswith("_at") or name == "claim_id" else value for name, value in row.items()}

    queries = (
        f"select json_build_array('{table}', t) from {schema}.{table} t where record = 'bench/{FIRST}'" for table in TABLES
    )
    found = [json.loads(line) for line in cluster.sql(";".join(queries)).splitlines()]
    return sorted(([table, plain(row)] for table, row in found), key=str)


def compare(cluster, op, rounds, all_clients, progress):
    """All comparisons of an operation; with them the ways that are its floor, by clients, and what each reached."""
    same_changes(cluster, op)
    if not op.fresh:
        fill(cluster, op, "kslate", "floor")
    tried, best, comparisons, places = {}, {}, [], count(0)
    for clients in all_clients:
        # Which way is the quickest depends on how many ask.
        if op.fresh:
            fill(cluster, op, "floor")
        sides = [side(cluster, op, way, clients, False, next(places)) for way in op.ways]
        sleep(op.lapse)
        found = dict(zip(op.ways, by_turns(sides, 2)))
        tried.update({(way, clients): measured for way, measured in found.items()})
        best[clients] = max(op.ways, key=lambda way: found[way].tps)
        reached = ", ".join(f"{way} {measured.tps:.0f}/s" for way, measured in found.items())
        progress(f"{op.name}, {clients} clients: the floor is {best[clients]}; {reached}")
    if op.fresh:
        # Each of the two sides has a schema to itself, and of what is filled a part is enough.
        op = replace(op, slices=1, records=op.records // op.slices)
    for sync in (True,) if op.reads else (True, False):
        for clients in all_clients:
            if op.fresh:
                fill(cluster, op, "kslate", "floor")
            place = next(places)
            sides = [side(cluster, op, way, clients, sync, place) for way in (None, best[clients])]
            sleep(op.lapse)
            comparison = Comparison(clients, sync, *by_turns(sides, rounds))
            comparisons.append(comparison)
            ours = comparison.ours
            progress(
                f"{op.name}, {clients} clients, synchronous_commit {'on' if sync else 'off'}: {ours.tps:.0f}/s, "
                f"{comparison.ratio:.2f} of the floor, cpu {comparison.cpu:.2f}, p50 {ours.p50:.2f} ms"
            )
    return comparisons, best, tried


def one(op):
    """The part of the report that is one operation."""
    return lambda cluster, report, quick: measure(cluster, report, quick, [op])


def measure(cluster, report, quick, operations=OPERATIONS):
    """The part `sql` of the report."""
    ways = []
    summary = report.section(
        "SQL, against the floor",
        "tps, latency and CPU of the server's processes per operation, ours; ratios are ours to the floor's. Wanted for claim, "
        "write and save: at least 0.90 of the floor's tps with synchronous_commit on and 0.80 without, for load and get 0.70; "
        "CPU at most 1.25 of the floor's.",
        ["operation", "sync", "clients", "tps", "of the floor", "p50 ms", "p99 ms", "floor p50", "cpu µs", "cpu ratio"],
    )
    for op in operations:
        # What is filled anew has records for so many turns only.
        rounds, clients = (3, (8,)) if quick else (9 if op.promised else 5, CLIENTS)
        comparisons, best, tried = with_enough(
            op.quick() if quick else op, lambda op: compare(cluster, op, rounds, clients, report.progress), report.progress
        )
        for c in comparisons:
            ours, floor = c.ours, c.floor
            summary.row(
                op.name,
                "on" if c.sync else "off",
                c.clients,
                ours.tps,
                c.ratio,
                ours.p50,
                ours.p99,
                floor.p50,
                ours.cpu,
                c.cpu,
            )
        for (way, clients), m in tried.items():
            ways.append((op.name, clients, way, "floor" if way == best[clients] else "", m.tps, m.p50, m.cpu))
    table = report.section(
        "Ways of writing the floor",
        "synchronous_commit off. The best for so many clients is the floor of the table above.",
        ["operation", "clients", "way", "", "tps", "p50 ms", "cpu µs"],
    )
    for way in ways:
        table.row(*way)
