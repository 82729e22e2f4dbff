"""Processor time of processes, in seconds, out of /proc."""

from pathlib import Path


def children(pid):
    """The process numbers of all children."""
    found = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        found += (task / "children").read_text().split()
    return [int(child) for child in found]


def spent(pid):
    """What all threads of a process have run so far, user and system; 0 where it has ended."""
    total = 0
    try:
        for task in Path(f"/proc/{pid}/task").iterdir():
            total += int((task / "schedstat").read_text().split()[0])
    except (FileNotFoundError, ProcessLookupError):
        pass
    return total / 1e9


def resident(pid):
    """Resident memory, in MiB."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise ValueError("no VmRSS")
