"""One run of pgbench: a script, so many clients, so many seconds; what it reached once it was warm."""

import math
import shutil
import subprocess
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from bench import cpu
from bench.cluster import run


@dataclass
class Measured:
    """tps; p50 and p99 in milliseconds; CPU of the server's processes per transaction in microseconds."""

    tps: float
    p50: float
    p99: float
    cpu: float


class Meter(threading.Thread):
    """Reads, between two moments, the CPU that the server's processes use."""

    def __init__(self, postmaster, begin, end):
        super().__init__()
        self.postmaster, self.begin, self.end = postmaster, begin, end

    def run(self):
        self.first = self.read(self.begin)
        self.last = self.read(self.end)

    def read(self, moment):
        time.sleep(max(0, moment - time.time()))
        before = time.time()
        spent = {pid: cpu.spent(pid) for pid in cpu.children(self.postmaster)}
        return (before + time.time()) / 2, spent

    def seconds(self):
        return sum(spent - self.first[1].get(pid, 0) for pid, spent in self.last[1].items())


def command(cluster, script, variables, *flags):
    words = [cluster.bin / "pgbench", "-n", "-M", "prepared", "-f", script, *flags]
    for name, value in variables.items():
        words += ["-D", f"{name}={value}"]
    return list(map(str, words))


def transaction(cluster, script, variables, role="bench"):
    """Executes a script once."""
    with tempfile.NamedTemporaryFile("w", suffix=".sql") as file:
        file.write(script)
        file.flush()
        run(*command(cluster, file.name, {"clients": 1, **variables}, "-t", 1), env=cluster.environment(role))


def pgbench(cluster, script, clients, seconds, warm=0.35, sync=True, variables=None, role="bench", database="kslate"):
    """Runs a script's text. The first `warm` seconds, in which each backend makes its plans, do not count."""
    folder = Path(tempfile.mkdtemp(prefix="pgbench-", dir=cluster.dir))
    try:
        (folder / "script.sql").write_text(script)
        words = command(
            cluster,
            folder / "script.sql",
            {"clients": clients, **(variables or {})},
            "-c",
            clients,
            "-j",
            min(clients, 2),
            "-T",
            math.ceil(warm + seconds),
            "--log",
            "--log-prefix",
            folder / "log",
        )
        environment = cluster.environment(role, database, synchronous_commit="on" if sync else "off")
        process = subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        began = time.time()
        meter = Meter(cluster.postmaster, began + warm, began + warm + seconds)
        meter.start()
        output = process.communicate()[0]
        meter.join()
        if process.returncode or "aborted" in output:
            raise SystemExit(f"pgbench failed:\n{script}\n{output[-3000:]}")
        return measure(folder, meter)
    finally:
        shutil.rmtree(folder)


def measure(folder, meter):
    """The transactions that ended between the meter's two readings."""
    begin, end = meter.first[0], meter.last[0]
    latencies = []
    for log in folder.glob("log.*"):
        for line in log.read_text().splitlines():
            words = line.split()
            if begin <= int(words[4]) + int(words[5]) / 1e6 < end:
                latencies.append(int(words[2]) / 1000)
    latencies.sort()
    count = len(latencies)
    if not count:
        raise SystemExit(f"no transaction in {end - begin:.1f} s: nothing to tell from that")
    return Measured(count / (end - begin), latencies[count // 2], latencies[count * 99 // 100], meter.seconds() / count * 1e6)
