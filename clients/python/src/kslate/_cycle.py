"""One claim in the hands of an agent: read, decide, carry out, checkpoint; and again, until it is completed or released."""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from kslate._actions import Action, Append, Complete, Release, Write
from kslate._claim import Claim
from kslate._errors import LeaseLost, VersionConflict
from kslate._fields import Fields, Seen

log = logging.getLogger("kslate")

T = TypeVar("T")

_REDECISIONS = 5
_NO_MORE: Any = object()


@dataclass(frozen=True)
class Agent:
    """Who decides. `decide(fields)` returns None (nothing to do now), an action, or several: a list, or a generator, whose
    actions are carried out one by one as they come. `build_checkpoint(fields)` returns the document that a successor will need,
    from the fields as they stand after the cycle's own changes; None saves nothing."""

    decide: Callable[[Fields], Action | Iterable[Action] | None]
    build_checkpoint: Callable[[Fields], Mapping[str, Any] | None] | None = None


class AgentFailed(Exception):
    """The agent's own code raised; `__cause__` is what."""


class DecisionOvertaken(Exception):
    """Every decision was overtaken by somebody else's write; `__cause__` is the last conflict."""


@dataclass
class Outcome:
    """How a cycle ended: with Complete or Release, or with None, for more to come; and whether anything was done in it."""

    ending: Complete | Release | None = None
    acted: bool = False


class Work:
    """The cycles of one claim."""

    def __init__(self, agent: Agent, claim: Claim) -> None:
        self._agent = agent
        self._claim = claim
        self._seen = Seen(claim.checkpoint_load())

    def cycle(self) -> Outcome:
        """Read, decide, carry out, checkpoint, and then complete or release. A VersionConflict ends a decision: the fields are
        read anew and it is made again, at most five times."""
        for again in range(_REDECISIONS, -1, -1):
            self._claim.ensure_live()
            fields = self._seen.read(self._claim.get(), self._claim)
            try:
                outcome = self._carry_out(fields)
                self._checkpoint(fields, outcome)
            except VersionConflict as conflict:
                log.info("%s: overtaken, nothing more of the decision is done: %s", self._claim.record, conflict.message)
                if not again:
                    raise DecisionOvertaken(f"{_REDECISIONS + 1} version conflicts in a row") from conflict
            else:
                self._seen.done()
                self._end(outcome)
                return outcome
        raise AssertionError("unreachable")

    def _carry_out(self, fields: Fields) -> Outcome:
        outcome = Outcome()
        with closing(self._decided(fields)) as actions:
            for action in actions:
                if isinstance(action, (Complete, Release)):
                    outcome.ending = action
                    outcome.acted |= isinstance(action, Complete)
                    break
                self._change(action)
                outcome.acted = True
        return outcome

    def _decided(self, fields: Fields) -> Generator[Action, None, None]:
        """The decision's actions one by one; whatever goes wrong, its generator is closed."""
        with self._agents_code("decide"):
            decided = self._agent.decide(fields)
        if decided is None:
            return
        if isinstance(decided, Action):
            yield decided
            return
        if not isinstance(decided, Iterable):
            raise TypeError(f"decide returns None, an action, or actions, not {type(decided).__name__}: {decided!r:.80}")
        actions = iter(decided)
        try:
            while True:
                with self._agents_code("decide"):
                    action = next(actions, _NO_MORE)
                if action is _NO_MORE:
                    return
                if not isinstance(action, Action):
                    raise TypeError(
                        f"an action is a Write, Append, Complete or Release, not {type(action).__name__}: {action!r:.80}"
                    )
                yield action
        finally:
            close = getattr(actions, "close", None)
            if close is not None:
                with self._agents_code("decide"):
                    close()

    @contextmanager
    def _agents_code(self, what: str) -> Iterator[None]:
        """Tell the agent's exceptions from the loop's own. That its claim is lost or its record has moved on is no failure."""
        try:
            yield
        except LeaseLost as lost:
            if self._claim.lost.is_set():
                raise
            raise AgentFailed(f"{what} raised LeaseLost") from lost
        except VersionConflict as conflict:
            if conflict.record == self._claim.record:
                raise
            raise AgentFailed(f"{what} raised VersionConflict") from conflict
        except Exception as error:
            raise AgentFailed(f"{what} raised {type(error).__name__}") from error

    def _change(self, action: Write | Append) -> None:
        record, name = self._claim.record, action.field
        if isinstance(action, Append):
            added = self._claim.append(name, action.value, action.evidence)
            self._seen.own(added, action.value)
            log.info("%s: appended %s #%d", record, name, added.version)
        else:
            written = self._claim.write(name, action.value, self._seen.version(name), action.evidence)
            self._seen.own(written, action.value)
            log.info("%s: wrote %s v%d", record, name, written.version)

    def _checkpoint(self, fields: Fields, outcome: Outcome) -> None:
        """Before the task is ended: a checkpoint may be the live holder's alone, and a successor may need it if that fails."""
        if self._agent.build_checkpoint is None:
            return
        with self._agents_code("build_checkpoint"):
            document = self._agent.build_checkpoint(self._seen.now(fields))
        # An agent that waits for hours must not fill the database with one and the same document.
        if document is None or not (outcome.acted or document != self._seen.document):
            return
        saved = self._claim.checkpoint_save(document, seen_version=self._seen.record_version)
        self._seen.document = dict(document)
        log.info("%s: saved checkpoint %d at record version %d", self._claim.record, saved.checkpoint_id, saved.record_version)

    def _end(self, outcome: Outcome) -> None:
        if isinstance(outcome.ending, Complete):
            self._claim.complete(outcome.ending.value, outcome.ending.evidence)
            log.info("%s: completed %s", self._claim.record, self._claim.field)
        elif isinstance(outcome.ending, Release):
            self._claim.release(outcome.ending.reason)
            log.info("%s: released %s: %s", self._claim.record, self._claim.field, outcome.ending.reason or "no reason given")
