"""An agent that works incidents: it takes the next one, carries out its planned action step by step, and closes it.

Start as many as there are tokens (KSLATE_SERVER, KSLATE_APIKEY=w1-token); kill any of them: another goes on where it was.
A plan is a list of steps. Each step done is an entry of `actions_taken`, so that a successor knows it, whatever became of us.
"""

from __future__ import annotations

import argparse
import logging
from collections.abc import Iterator
from typing import Any

from kslate import Action, Agent, Append, Client, Complete, Fields, Release, Write, run


def decide(fields: Fields) -> Iterator[Action]:
    """One step of the plan a cycle."""
    steps = fields["planned_action"]
    if not steps:
        yield Release("there is no plan yet")
        return
    plan = f"planned_action@{fields.version('planned_action')}"
    done = [entry["value"] for entry in fields["actions_taken"]]
    left = [step for step in steps if step not in done]
    if left:
        yield Append("actions_taken", carry_out(left[0]), evidence=plan)
    else:
        yield Write("status", "resolved", evidence=plan)
        yield Complete({"steps": len(done)})


def carry_out(step: str) -> str:
    """Where the real work would be; it must bear being done again, should we die before it is noted."""
    logging.getLogger("incident_agent").info("doing: %s", step)
    return step


def account(fields: Fields) -> dict[str, Any]:
    """The checkpoint: what a successor in this role needs to know."""
    return {
        "goal": f"carry out planned_action@{fields.version('planned_action')}",
        "decisions": "the plan's steps in their order",
        "progress": f"{len(fields['actions_taken'])} of {len(fields['planned_action'] or [])} steps done",
        "open_questions": "none",
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--max-cycles", type=int, metavar="N", help="end after N cycles (endless)")
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    with Client() as client:
        agent = Agent(decide, account)
        cycles = parser.parse_args().max_cycles
        run(agent, client, class_name="incidents", claim_field="remediation", max_cycles=cycles)


if __name__ == "__main__":
    main()
