"""An agent whose decisions are a language model's: any callable that answers a text with a text.

The model gets the record as JSON and must answer with a JSON list of actions. Its answer is checked before anything of it is
carried out; a bad one goes back to it with the reason, and after the third the task is given back for somebody else.

    KSLATE_APIKEY=w1-token python llm_agent.py                                with a made-up model: it runs anywhere
    KSLATE_APIKEY=w1-token PYTHONPATH=. python llm_agent.py --model mine:ask  with the function `ask` of your mine.py
"""

from __future__ import annotations

import argparse
import importlib
import json
import logging
from collections.abc import Callable
from typing import Any

from kslate import Action, Agent, Append, Client, Complete, Fields, Release, Write, run

Model = Callable[[str], str]

log = logging.getLogger("llm_agent")

PROMPT = """You work an incident. Its fields, and what changed since your predecessor's account:
{record}
Answer with a JSON list of actions and nothing else. Actions:
{{"do": "append", "field": "actions_taken", "value": <one sentence>, "evidence": <why>}}
{{"do": "write", "field": "status", "value": "mitigating" or "resolved", "evidence": <why>}}
{{"do": "complete", "value": <one sentence>}}   as the last one, once nothing is left to do
{{"do": "release", "evidence": <why>}}          as the only one, if you cannot help
{complaint}"""
TRIES = 3


def made_up_model(prompt: str) -> str:
    """Stands in for a model: notes the plan once, then closes the incident."""
    fields = json.loads(prompt.partition("\n")[2].partition("\nAnswer")[0])["fields"]
    plan = fields["planned_action"]["value"]
    if plan is None:
        return '[{"do": "release", "evidence": "nobody has planned anything yet"}]'
    if not fields["actions_taken"]["value"]:
        return json.dumps([{"do": "append", "field": "actions_taken", "value": f"done: {plan}", "evidence": "the plan"}])
    return """```json
[{"do": "write", "field": "status", "value": "resolved", "evidence": "the plan is carried out"},
 {"do": "complete", "value": "resolved"}]
```"""


def parse(answer: str) -> list[Action]:
    """The actions of an answer. Raises ValueError with a sentence that the model can use."""
    text = answer.strip().removeprefix("```json").removeprefix("```").removesuffix("```")
    try:
        items = json.loads(text)
    except json.JSONDecodeError as fault:
        raise ValueError(f"that was no JSON: {fault}") from None
    if not isinstance(items, list) or not items:
        raise ValueError("the answer must be a JSON list with at least one action")
    return [action(item) for item in items]


def action(item: Any) -> Action:
    """One action, with the fields that this agent lets a model touch, and no other."""
    match item:
        case {"do": "append", "field": "actions_taken", "value": str(value), "evidence": str(why)}:
            return Append("actions_taken", value, why)
        case {"do": "write", "field": "status", "value": "mitigating" | "resolved" as value, "evidence": str(why)}:
            return Write("status", value, why)
        case {"do": "complete", "value": value}:
            return Complete(value)
        case {"do": "release", "evidence": str(why)}:
            return Release(why)
    raise ValueError(f"this is none of the actions: {json.dumps(item)}")


def deciding(model: Model) -> Callable[[Fields], list[Action]]:
    """A `decide` that asks the model. The lease is renewed while it thinks, however long that takes."""

    def decide(fields: Fields) -> list[Action]:
        complaint = ""
        for _ in range(TRIES):
            answer = model(PROMPT.format(record=json.dumps(as_json(fields)), complaint=complaint))
            try:
                return parse(answer)
            except ValueError as fault:
                complaint = f"Your last answer was refused: {fault}"
                log.warning("%s: %s", fields.record, complaint)
        return [Release(f"no usable answer from the model: {complaint}")]

    return decide


def as_json(fields: Fields) -> dict[str, Any]:
    """What the model is shown: each value with its version, author and reason, so that it can refer to them."""
    return {
        "record": fields.record,
        "checkpoint": fields.checkpoint,
        "changed_since": [f"{change.field}@{change.version} by {change.author}" for change in fields.changed_fields],
        "fields": {
            name: {"value": value, "version": fields.version(name), "author": fields.author(name), "why": fields.evidence(name)}
            for name, value in fields.items()
        },
    }


def account(fields: Fields) -> dict[str, Any]:
    taken = [entry["value"] for entry in fields["actions_taken"]]
    return {
        "goal": f"resolve {fields.record}",
        "decisions": f"planned_action@{fields.version('planned_action')}",
        "progress": taken[-1] if taken else "nothing done yet",
        "open_questions": "none",
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", metavar="MODULE:FUNCTION", help="a function from prompt to answer (a made-up one)")
    parser.add_argument("--max-cycles", type=int, metavar="N", help="end after N cycles (endless)")
    options = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    model: Model = made_up_model
    if options.model:
        module, _, function = options.model.partition(":")
        model = getattr(importlib.import_module(module), function)
    agent = Agent(deciding(model), account)
    with Client() as client:
        run(agent, client, class_name="incidents", claim_field="remediation", max_cycles=options.max_cycles)


if __name__ == "__main__":
    main()
