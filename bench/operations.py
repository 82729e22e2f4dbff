"""The operations that are measured, the records they work on, and the sides that carry them out."""

from dataclasses import dataclass, replace
from functools import cached_property

from bench.cluster import HERE
from bench.pgbench import WARM, Pgbench
from bench.turns import Failed

# Keys are numbers of twelve digits, so that a statement makes record and claim_id out of one integer.
FIRST = 100_000_000_000
TABLES = ("record", "field", "claim", "checkpoint", "history")

DOCUMENT = '{"goal": "take node 7 out of service", "progress": {"step": 3, "of": 9}, "decisions": [%s]}' % ", ".join(
    f'"moved shard {i} to node {i % 5} after its replica had caught up; no client saw an error"' for i in range(9)
)
PLAN = '{"step": "drain node 8", "because": "node 7 was not the cause, see the log", "risk": 2}'
ENTRY = '"moved shard 3 to node 4; its replica had caught up"'

# A client's transactions go through records of its own, so that it can count the versions.
PICK = """\\set k :k + 1
\\set n :first + :client_id + :clients * (:k % :share)
\\set v 1 + :k / :share
"""


@dataclass(frozen=True)
class Operation:
    """`slices`: into how many parts the records are cut; each side has a part of its own. `lapse`: for how many seconds a record
    that was touched cannot be touched again. `fresh`: the tables are filled anew for each comparison. `entries`, `held`: what
    the records are filled with. `promised`: it must reach nine tenths of the floor. `warm`: for how many seconds a side runs
    before it is measured."""

    name: str
    slices: int = 27
    records: int = 27_648
    lapse: int = 0
    fresh: bool = False
    held: bool = False
    entries: int = 0
    reads: bool = False
    promised: bool = False
    warm: float = WARM

    @cached_property
    def ways(self):
        return sorted(path.stem for path in (HERE / "floor" / self.name).glob("*.sql"))

    def quick(self):
        """The same for one number of clients and few rounds: a part for each way of the floor and each
        comparison, or two thirds of the records."""
        if self.fresh:
            return replace(self, records=self.records // 3 * 2, warm=WARM / 3)
        slices = min(self.slices, 5)
        return replace(self, slices=slices, records=self.records // self.slices * slices, warm=WARM / 3)

    def script(self, way=None):
        """The text for pgbench: ours, or a way of the floor."""
        path = HERE / "floor" / self.name / f"{way}.sql" if way else HERE / "ours" / f"{self.name}.sql"
        return PICK + path.read_text()

    def variables(self, clients, place=0, records=None):
        """What the script's variables are, for the part of the records that is `place`."""
        size = (records or self.records) // self.slices
        return {
            "k": -1,
            "first": FIRST + place % self.slices * size,
            "share": size // clients,
            "me": "pg:bench",
            "plan": PLAN,
            "document": DOCUMENT,
            "entry": ENTRY,
        }


OPERATIONS = [
    # A lease of one second, over a quarter of the records: where a side comes by again, the leases have lapsed.
    Operation("claim", slices=4, records=73_728, lapse=1, promised=True),
    Operation("write", promised=True),
    Operation("save", promised=True),
    Operation("append"),
    Operation("renew", held=True),
    Operation("next", slices=1, records=12_288, fresh=True),
    Operation("resolve", slices=3, records=36_864, fresh=True),
    Operation("load", slices=1, records=4_096, entries=5, reads=True),
    Operation("get", slices=1, records=4_096, entries=5, reads=True),
]


def operation(name):
    return next(one for one in OPERATIONS if one.name == name)


def with_enough(op, measure, progress):
    """What `measure(op)` returns. A machine may be so quick that a side comes to records too early: to an empty queue, a lease that
    is live, a version that it has written. Then all is measured again with twice the records, three times at most."""
    for doublings in range(3):
        try:
            return measure(replace(op, records=op.records << doublings))
        except Failed as failed:
            progress(f"{op.name}: {op.records << doublings} records were too few, again with twice as many ({str(failed).splitlines()[0]})")
    return measure(replace(op, records=op.records << 3))


def tidy(schema):
    """SQL that leaves the tables as autovacuum would, and their pages written."""
    return "".join(f"vacuum analyze {schema}.{table};" for table in TABLES) + "checkpoint;"


def fill(cluster, op, *schemas, tidied=True):
    """Fills the tables anew."""
    for schema in schemas:
        call = f"call bench.fill('{schema}', {op.records}, {op.entries}, {op.held}, $${DOCUMENT}$$);"
        cluster.sql(call + tidy(schema) if tidied else call)


def side(cluster, op, way, clients, sync, place=0):
    """Ours where `way` is None, else that way of the floor, on the part of the records that is `place`."""
    return Pgbench(cluster, op.script(way), clients, sync=sync, variables=op.variables(clients, place), warm=op.warm)
