"""The report: sections with a table each, as Markdown for people and as JSON for programs, and a line of progress meanwhile."""

import json
import os
import platform
import re
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

from bench.cluster import HERE, ROOT, SETTINGS


def shown(value):
    """A number with three digits that say something."""
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:.0f}" if abs(value) >= 100 else f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"
    return str(value)


class Section:
    """A title, what to know when reading it, and a table."""

    def __init__(self, title, text, columns):
        self.title, self.text, self.columns, self.rows = title, text, columns, []

    def row(self, *values):
        assert len(values) == len(self.columns)
        self.rows.append(values)

    def markdown(self):
        lines = [f"## {self.title}", "", self.text, ""]
        if self.rows:
            lines += [f"| {' | '.join(self.columns)} |", "|" + "---|" * len(self.columns)]
            lines += [f"| {' | '.join(map(shown, row))} |" for row in self.rows] + [""]
        return "\n".join(lines)


class Report:
    """What was measured, where and with what."""

    def __init__(self, quick, parts):
        self.began, self.quick, self.parts, self.sections = time.time(), quick, parts, []

    def section(self, title, text, columns):
        """The section of this title, made where it is not there yet."""
        for section in self.sections:
            if section.title == title:
                return section
        self.sections.append(Section(title, text, columns))
        return self.sections[-1]

    def progress(self, line):
        seconds = int(time.time() - self.began)
        print(f"{seconds // 60:3}:{seconds % 60:02}  {line}", file=sys.stderr, flush=True)

    def about(self, cluster):
        names = ["server_version", "fsync", "full_page_writes", "synchronous_commit", "wal_level", *SETTINGS]
        values = cluster.sql(";".join(f"show {name}" for name in names)).splitlines()
        info = Path("/proc/cpuinfo").read_text()
        memory = int(re.search(r"MemTotal:\s+(\d+)", Path("/proc/meminfo").read_text())[1])
        self.machine = {
            "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
            "commit": commit(),
            "cpu": f"{os.cpu_count()} × {(re.search(r'model name.*: (.*)', info) or ['', platform.machine()])[1]}",
            "memory": f"{memory / 1024**2:.0f} GiB",
            "kernel": platform.release(),
            "PostgreSQL": values[0],
            "settings": ", ".join(f"{name} = {value}" for name, value in zip(names[1:], values[1:])),
            "form": "quick: short rounds, the numbers say little" if self.quick else "full",
        }

    def write(self):
        """Writes bench/results/<parts>.md and .json; `latest` where all parts were measured."""
        seconds = int(time.time() - self.began)
        self.machine["took"] = f"{seconds // 60} min {seconds % 60} s"
        folder = HERE / "results"
        folder.mkdir(exist_ok=True)
        name = ("quick-" if self.quick else "") + (self.parts or "latest")
        head = ["# What `make bench` measured", ""] + [f"- {key}: {value}" for key, value in self.machine.items()] + [""]
        text = "\n".join(head + [section.markdown() for section in self.sections])
        (folder / f"{name}.md").write_text(text)
        sections = {s.title: [dict(zip(s.columns, row)) for row in s.rows] for s in self.sections}
        (folder / f"{name}.json").write_text(
            json.dumps({**self.machine, "sections": sections}, indent=1, ensure_ascii=False) + "\n"
        )
        return folder / f"{name}.md"


def commit():
    def git(*words):
        return subprocess.run(["git", "-C", ROOT, *words], capture_output=True, text=True).stdout.strip()

    # The code that was measured; what lies beside it does not count.
    dirty = git("status", "--porcelain", "--", "kslate-pg", "kslate-class", "kslate-http", "sql", "bench/floor", "bench/ours")
    return git("rev-parse", "--short", "HEAD") + (" and changes not committed" if dirty else "")
