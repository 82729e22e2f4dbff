"""Every Python snippet of the documentation runs, and prints what stands below it."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.deployment import ROOT, Deployment

from examples.pages import blocks, play

PAGES = sorted(
    page
    for page in (*ROOT.glob("docs/*.md"), ROOT / "README.md", ROOT / "clients/python/README.md")
    if any(block.language in ("python", "bash") for block in blocks(page))
)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page(fresh: Deployment, page: Path) -> None:
    assert play(page, fresh, "w1-token") > 0


def test_no_page_is_forgotten() -> None:
    names = {str(page.relative_to(ROOT)) for page in PAGES}
    assert names >= {"docs/agent-loop.md", "docs/surviving-a-crash.md", "clients/python/README.md"}
