"""Processor time of processes, in seconds, out of /proc."""

import os
from pathlib import Path

PRECISE = Path("/proc/self/schedstat").exists()


def children(pid):
    """The process numbers of all children."""
    found = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        found += (task / "children").read_text().split()
    return [int(child) for child in found]


def spent(pid):
    """What all threads of a process have run so far, user and system; 0 where it has ended."""
    try:
        return sum(of_thread(task) for task in Path(f"/proc/{pid}/task").iterdir())
    except (FileNotFoundError, ProcessLookupError):
        return 0


def of_thread(task):
    """To the nanosecond where the kernel tells, else in its ticks."""
    if PRECISE:
        return int((task / "schedstat").read_text().split()[0]) / 1e9
    words = (task / "stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def resident(pid):
    """Resident memory, in MiB."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise ValueError("no VmRSS")
