"""pgbench as a side: a script, so many clients, and what it reached once its backends had made their plans."""

import itertools
import math
import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

from bench import cpu
from bench.cluster import run
from bench.turns import Failed, Measured

WARM = 0.3
# What was under way when the side was stopped is done by then.
SETTLE = 0.03
numbers = itertools.count(1)


def command(cluster, script, variables, *flags):
    words = [cluster.bin / "pgbench", "-n", "-M", "prepared", "-f", script, *flags]
    for name, value in variables.items():
        words += ["-D", f"{name}={value}"]
    return list(map(str, words))


def transaction(cluster, script, variables):
    """Executes a script once."""
    with tempfile.NamedTemporaryFile("w", suffix=".sql") as file:
        file.write(script)
        file.flush()
        run(*command(cluster, file.name, {"clients": 1, **variables}, "-t", 1), env=cluster.environment("bench"))


class Pgbench:
    """A run of pgbench that stands still between its turns."""

    def __init__(self, cluster, script, clients, sync=True, variables=None, database="kslate", warm=WARM):
        self.cluster, self.script, self.clients = cluster, script, clients
        self.warm = warm
        self.variables = {"clients": clients, **(variables or {})}
        self.name = f"side {next(numbers)}"
        self.environment = cluster.environment("bench", database, synchronous_commit="on" if sync else "off")
        self.turns, self.readings, self.process = [], [], None

    def begin(self, seconds):
        """Connects and makes plans. `seconds` is how long all turns of all sides are."""
        self.folder = Path(tempfile.mkdtemp(prefix="pgbench-", dir=self.cluster.dir))
        (self.folder / "script.sql").write_text(self.script)
        # On a machine that is busy all takes longer; `end` does not wait for the limit.
        limit = math.ceil(60 + 3 * seconds)
        flags = ["-c", self.clients, "-j", min(self.clients, 2), "-T", limit, "--log", "--log-prefix", self.folder / "log"]
        self.process = subprocess.Popen(
            command(self.cluster, self.folder / "script.sql", self.variables, *flags),
            env={**self.environment, "PGAPPNAME": self.name},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        time.sleep(self.warm)
        self.pause()
        found = self.cluster.sql(f"select pid from pg_stat_activity where application_name = '{self.name}'")
        self.backends = [int(line) for line in found.splitlines()]
        self.readings.append(self.reading())

    def pause(self):
        os.kill(self.process.pid, signal.SIGSTOP)
        time.sleep(SETTLE)

    def turn(self, seconds):
        begin = time.time()
        os.kill(self.process.pid, signal.SIGCONT)
        time.sleep(seconds)
        self.turns.append((begin, time.time()))
        self.pause()
        self.readings.append(self.reading())

    def runs(self):
        return self.process.poll() is None

    def reading(self):
        """The time, and the CPU that the backends have used."""
        return time.time(), sum(cpu.spent(pid) for pid in self.backends)

    def end(self, rounds):
        """What was reached in the first so many turns."""
        if self.runs():
            # What pgbench sends itself at the end of its time.
            os.kill(self.process.pid, signal.SIGALRM)
            os.kill(self.process.pid, signal.SIGCONT)
        output = self.process.communicate()[0]
        if self.process.returncode or "aborted" in output:
            why = next((line for line in output.splitlines() if "error:" in line), "pgbench failed")
            raise Failed(f"{why}\n{self.script}\n{output[-3000:]}")
        ended = list(self.transactions())
        self.total = len(ended)
        shutil.rmtree(self.folder)
        rates, latencies = [], []
        for begin, end in self.turns[:rounds]:
            # One that began before the turn stood still in between.
            found = [took for moment, took in ended if moment - took > begin and moment <= end]
            rates.append(len(found) / (end - begin))
            latencies += [took * 1000 for took in found]
        latencies.sort()
        (first, before), (last, after) = self.readings[0], self.readings[rounds]
        count = sum(first < moment <= last for moment, _ in ended)
        spent = (after - before) / max(count, 1) * 1e6
        at = [latencies[len(latencies) * percent // 100] if latencies else None for percent in (50, 99)]
        return Measured(rates, *at, spent)

    def abandon(self):
        if self.process:
            self.process.kill()
            self.process.wait()

    def transactions(self):
        """When each ended and how long it took, in seconds."""
        for log in self.folder.glob("log.*"):
            for line in log.read_text().splitlines():
                words = line.split()
                yield int(words[4]) + int(words[5]) / 1e6, int(words[2]) / 1e6
