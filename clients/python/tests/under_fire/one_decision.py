"""An agent process with one long decision: python -m under_fire.one_decision RECORD LOG LEASE BLOCK.

It blocks BLOCK seconds in `decide`, or until it is told that the lease is lost; then it writes, past the package if it must.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from pathlib import Path

from support.wiretap import Wiretap

from kslate import Action, Agent, Append, Client, Complete, Fields, LeaseLost, run


def main() -> None:
    record, log, lease, block = sys.argv[1:]
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    wiretap = Wiretap(Path(log), "blocked")
    client = Client()

    def decide(fields: Fields) -> Iterator[Action]:
        wiretap.note("deciding", epoch=fields.claim.epoch)
        if fields.claim.lost.wait(float(block)):
            wiretap.note("told", live=fields.claim.live)
            try:
                client.append(record, "actions_taken", "the pending write", claim_id=fields.claim.claim_id)
            except LeaseLost as lost:
                wiretap.note("refused", reason=lost.reason, owner=lost.owner)
        yield Append("actions_taken", "written through the loop")
        yield Complete("done")

    with client:
        run(Agent(decide), client, record=record, claim_field="remediation", lease_seconds=int(lease), poll_seconds=0.2)


if __name__ == "__main__":
    main()
