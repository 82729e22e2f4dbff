"""Measuring by turns: each side starts once and then runs for a fifth of a second at a time, while the others stand still.

A machine that is slower for a second is so for all sides, and what they are compared by is the ratio within each round.
"""

import time
from dataclasses import dataclass
from statistics import median

SECONDS = 0.2


class Failed(SystemExit):
    """A side that could not do what it was to do; it says why."""


@dataclass
class Measured:
    """Transactions per second of each turn; p50 and p99 in milliseconds; the server's CPU per transaction in microseconds."""

    rates: list
    p50: float
    p99: float
    cpu: float

    @property
    def tps(self):
        return median(self.rates)

    def to(self, other):
        """The ratio of tps to another's: the median of the rounds."""
        return median(mine / theirs for mine, theirs in zip(self.rates, other.rates) if theirs)


def by_turns(sides, rounds, seconds=SECONDS):
    """Runs the sides (`begin`, `turn(seconds)`, `end`), every other round backwards, and returns what `end` says of each.

    A side that is over before its time, on a machine that is busy, ends the rounds for all. Where one fails, none is left behind.
    """
    try:
        return measured(sides, rounds, seconds)
    except BaseException:
        for side in sides:
            side.abandon()
        raise


def measured(sides, rounds, seconds):
    for side in sides:
        side.begin(len(sides) * rounds * seconds)
    done = 0
    for number in range(rounds):
        for side in sides if number % 2 == 0 else reversed(sides):
            side.turn(seconds)
        if not all(side.runs() for side in sides):
            break
        done += 1
    found = [side.end(done) for side in sides]
    if not any(all(rates) for rates in zip(*(one.rates for one in found))):
        raise SystemExit("this machine is too busy to measure anything: there was no round in which each side did something")
    return found


def alone(side, seconds):
    """What one side does in one turn."""
    return by_turns([side], 1, seconds)[0]
