"""Each example does what it says, against a real server."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from support.deployment import ROOT, Deployment

EXAMPLES = ROOT / "clients/python/examples"
MANUAL = ROOT / "tests/manual/surviving-a-crash.txt"


def start(deployment: Deployment, example: str, *arguments: str, modules: Path | None = None) -> str:
    """What an example prints; it must end well. `modules` is a folder with modules of the reader's own."""
    done = subprocess.run(
        [sys.executable, EXAMPLES / example, *arguments],
        cwd=deployment.folder,
        env=deployment.environment("w1-token") | ({"PYTHONPATH": str(modules)} if modules else {}),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def history(deployment: Deployment, record: str) -> list[tuple[str, str | None, str]]:
    rows = deployment.call("GET", f"/v1/records/{record}/history?page_size=1000")["history"]
    return [(row["op"], row["field"], row["author"]) for row in rows]


def manual_prints() -> str:
    """The lines that the manual's page shows: those of the crash, and what the replacement wakes up to."""
    return MANUAL.read_text().partition("\n=== prints\n")[2].partition("=== ")[0]


def test_surviving_a_crash_prints_the_page(fresh: Deployment) -> None:
    assert start(fresh, "surviving_a_crash.py") == manual_prints()
    takeover = ("takeover", "remediation", "apikey:remediator/worker-2")
    assert takeover in history(fresh, "incidents/inc-111")


def test_surviving_a_crash_says_why_it_cannot_be_staged_twice(fresh: Deployment) -> None:
    start(fresh, "surviving_a_crash.py", "incidents/inc-1", "--lease", "1")
    with pytest.raises(AssertionError, match="incidents/inc-1 is there already"):
        start(fresh, "surviving_a_crash.py", "incidents/inc-1", "--lease", "1")


def test_incident_agent_carries_out_plans_and_closes_incidents(fresh: Deployment) -> None:
    plan = {"value": ["cordon node-7", "evict its pods"], "expected_version": 0, "evidence": "its disk fails"}
    for record in ("incidents/inc-1", "incidents/inc-2"):
        fresh.call("PUT", f"/v1/records/{record}")
        fresh.call("PUT", f"/v1/records/{record}/fields/planned_action", plan)
    printed = start(fresh, "incident_agent.py", "--max-cycles", "6")
    assert "doing: evict its pods" in printed
    for record in ("incidents/inc-1", "incidents/inc-2"):
        fields = {field["field"]: field for field in fresh.call("GET", f"/v1/records/{record}")["fields"]}
        assert fields["status"]["value"] == "resolved"
        assert [entry["value"] for entry in fields["actions_taken"]["value"]] == plan["value"]
        assert {entry["evidence"] for entry in fields["actions_taken"]["value"]} == {"planned_action@1"}
        assert fields["remediation"]["claim"]["state"] == "completed"
        checkpoint = fresh.call("GET", f"/v1/records/{record}/checkpoint", token="w1-token")
        assert checkpoint["document"]["progress"] == "2 of 2 steps done"


def test_incident_agent_gives_back_what_has_no_plan(fresh: Deployment) -> None:
    fresh.call("PUT", "/v1/records/incidents/inc-1")
    start(fresh, "incident_agent.py", "--max-cycles", "1")
    assert [op for op, _, _ in history(fresh, "incidents/inc-1")] == ["create", "claim", "release"]


def test_llm_agent_resolves_an_incident(fresh: Deployment) -> None:
    fresh.call("PUT", "/v1/records/incidents/inc-1")
    plan = {"value": "restart the pod", "expected_version": 0, "evidence": "it hangs"}
    fresh.call("PUT", "/v1/records/incidents/inc-1/fields/planned_action", plan)
    start(fresh, "llm_agent.py", "--max-cycles", "2")
    changes = [row for row in history(fresh, "incidents/inc-1") if row[2] == "apikey:remediator/worker-1"]
    assert [(op, field) for op, field, _ in changes] == [
        ("claim", "remediation"),
        ("append", "actions_taken"),
        ("write", "status"),
        ("complete", "remediation"),
    ]


BAD_MODEL = """
answers = iter(["I would restart it.", '[{"do": "write", "field": "planned_action", "value": "mine"}]', %r])
prompts = []

def ask(prompt):
    prompts.append(prompt)
    print(prompt.rpartition("\\n")[2], flush=True)
    return next(answers)
"""


def test_llm_agent_tells_the_model_what_was_wrong(fresh: Deployment, tmp_path: Path) -> None:
    fresh.call("PUT", "/v1/records/incidents/inc-1")
    good = '[{"do": "append", "field": "actions_taken", "value": "looked at it", "evidence": "it hangs"}]'
    (tmp_path / "mine.py").write_text(BAD_MODEL % good)
    printed = start(fresh, "llm_agent.py", "--model", "mine:ask", "--max-cycles", "1", modules=tmp_path)
    assert "Your last answer was refused: that was no JSON" in printed
    assert "Your last answer was refused: this is none of the actions" in printed
    assert ("append", "actions_taken", "apikey:remediator/worker-1") in history(fresh, "incidents/inc-1")


def test_llm_agent_gives_back_what_its_model_cannot_do(fresh: Deployment, tmp_path: Path) -> None:
    fresh.call("PUT", "/v1/records/incidents/inc-1")
    (tmp_path / "mine.py").write_text(BAD_MODEL % "[]")
    start(fresh, "llm_agent.py", "--model", "mine:ask", "--max-cycles", "1", modules=tmp_path)
    rows = fresh.call("GET", "/v1/records/incidents/inc-1/history")["history"]
    assert [row["op"] for row in rows] == ["create", "claim", "release"]
    assert rows[-1]["reason"].startswith("no usable answer from the model")


@pytest.mark.parametrize("example", sorted(path.name for path in EXAMPLES.glob("*.py")))
def test_help_tells_what_it_is(readers: Deployment, example: str) -> None:
    printed = start(readers, example, "--help")
    assert printed.startswith(f"usage: {example}")
    assert (EXAMPLES / example).read_text().split('"""')[1].splitlines()[0] in printed
