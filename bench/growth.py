"""Growth: the same operations beside more and more history, and claim next on a long queue."""

from dataclasses import replace

from bench.cluster import HERE
from bench.operations import DOCUMENT, operation, tidy
from bench.pgbench import Pgbench
from bench.turns import by_turns

# A third of the history lies on these records, and only they are touched. They are few, so that among a thousand rows each has
# the twenty entries that a read shows.
MEASURED = 12
ROUNDS = 9
# The other records have as many entries each.
ENTRIES = 97
# Renewals first: a claim changes what there is to renew.
NAMES = ("renew", "claim", "write", "append", "save", "load", "get")


def measure(cluster, report, quick):
    """The part `growth` of the report."""
    sizes = (1_000, 10_000, 100_000) if quick else (1_000, 100_000, 10_000_000)
    queues = (
        ((25_000, 25_000, 250), (50_000, 50_000, 1_000)) if quick else ((50_000, 50_000, 500), (1_000_000, 1_000_000, 10_000))
    )
    load(cluster, sizes, queues, report)
    history(cluster, report, sizes, *((4, ("write", "get")) if quick else (ROUNDS, NAMES)))
    queue(cluster, report, queues, 4 if quick else ROUNDS)
    for name in databases(sizes, queues):
        cluster.sql(f"drop database {name} with (force)")


def databases(sizes, queues):
    return [f"history_{size}" for size in sizes] + [f"queue_{opened}" for opened, _, _ in queues]


def load(cluster, sizes, queues, report):
    """A database for each size, loaded without a flush; measured with all of them."""
    cluster.restart(fsync="off", wal_level="minimal", max_wal_senders="0")
    for name in databases(sizes, queues):
        report.progress(f"growth: loading {name}")
        cluster.sql(f"create database {name} template kslate", "postgres")
    for size in sizes:
        fill_history(cluster, f"history_{size}", size)
    for opened, done, held in queues:
        fill_queue(cluster, f"queue_{opened}", opened, done, held)
    cluster.restart(fsync="on", wal_level="replica", max_wal_senders="10")


def fill_history(cluster, database, rows):
    """So many rows of history, the indexes made afterwards, which is quicker."""
    others = max(0, rows * 2 // 3 // (ENTRIES + 3))
    entries = max(0, rows // 3 // MEASURED - 3)
    indexes = cluster.sql(
        "select indexdef from pg_indexes where schemaname = 'kslate' and tablename = 'history' and indexname <> 'history_pkey'",
        database,
    )
    cluster.sql(
        f"""alter table kslate.history drop constraint history_pkey; drop index kslate.history_field;
        call bench.fill('kslate', {MEASURED + others}, {ENTRIES}, true, $${DOCUMENT}$$, {MEASURED}, {entries});
        alter table kslate.history add primary key (record, record_version); {indexes}; {tidy("kslate")}""",
        database,
    )


def fill_queue(cluster, database, opened, done, held):
    cluster.sql((HERE / "sql/queue.sql").read_text(), database)
    cluster.sql(f"call bench.queue({opened}, {done}, {held}); {tidy('kslate')}", database)


def history(cluster, report, sizes, rounds, names):
    """Each operation on the measured records, one client, no flush, by turns over the sizes."""
    table = report.section(
        "Growth of history",
        f"One client, synchronous_commit off, on {MEASURED} records that hold a third of all history: the median latency in ms, by the "
        "number of rows in kslate.history. Flat means within 1.15.",
        ["operation", *(f"{size:,} rows" for size in sizes), f"{sizes[1]:,} to {sizes[0]:,}", f"{sizes[2]:,} to {sizes[0]:,}"],
    )
    for name in names:
        op = replace(operation(name), slices=1, records=MEASURED)
        # A record's turn comes again within the second: the holder takes its claim back.
        script = op.script().replace("'task', 1)", "'task', 60, true)")
        first, *more = by_turns(
            [Pgbench(cluster, script, 1, sync=False, variables=op.variables(1), database=f"history_{size}") for size in sizes], rounds
        )
        ratios = [grown.p50 / first.p50 for grown in more]
        table.row(name, first.p50, *(grown.p50 for grown in more), *ratios)
        report.progress(f"growth, {name}: " + ", ".join(f"{ratio:.2f}" for ratio in ratios) + " of the smallest")


def queue(cluster, report, queues, rounds):
    """Claim next on the short and the long queue by turns."""
    table = report.section(
        "Growth of the queue",
        "Claim next, one client, synchronous_commit off: the median latency in ms, by open / done / held tasks. Flat means within 1.15; "
        "with a filter (here one that nine of ten tasks match) it need not be.",
        ["", *(" / ".join(f"{count:,}" for count in one) for one in queues), "long to short"],
    )
    for name, arguments in (("claim next", ""), ("claim next, filtered", ", :filter")):
        script = f"select * from kslate_claim_next('bench', 'task', 3600{arguments}) \\gset\n"
        variables = {"filter": '{"status": "open"}'}
        short, long = by_turns(
            [Pgbench(cluster, script, 1, sync=False, variables=variables, database=f"queue_{opened}") for opened, _, _ in queues], rounds
        )
        table.row(name, short.p50, long.p50, long.p50 / short.p50)
        report.progress(f"growth, {name}: {long.p50 / short.p50:.2f} of the short queue")
