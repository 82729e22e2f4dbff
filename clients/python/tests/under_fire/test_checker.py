"""The checker accepts a run in which nothing went wrong, and finds each thing that is forged into it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from support.checker import CHECKS, check
from support.recording import Recording

from under_fire.doctorings import DOCTORINGS
from under_fire.small_run import small_run


def test_a_good_run_is_accepted() -> None:
    assert check(small_run()) == []


@pytest.mark.parametrize(("doctor", "found_by"), DOCTORINGS.items(), ids=lambda each: getattr(each, "__name__", None))
def test_a_doctored_run_is_not(doctor: Callable[[Recording], None], found_by: str) -> None:
    recording = small_run()
    doctor(recording)
    assert [finding for finding in check(recording) if finding.startswith(f"{found_by}: ")]


def test_every_check_has_a_doctoring_that_it_must_find() -> None:
    assert set(DOCTORINGS.values()) == {each.__name__.replace("_", " ") for each in CHECKS}
