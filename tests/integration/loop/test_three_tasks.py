"""Three chores of several steps converge over real runs, with a planner that is no oracle."""

from __future__ import annotations

import json
import random

import pytest

from loop.start import history, new
from tests.integration.loop.helpers import Scripts, kit_in, order_for
from tests.integration.loop.three_tasks import CHORES

pytestmark = pytest.mark.sandbox


def cases() -> list:
    """Every chore with several seeds; the quick run takes one of them."""
    return [
        pytest.param(
            chore,
            seed,
            id=f"{chore.name}-{seed}",
            marks=[] if (chore.name, seed) == ("log triage", 1) else [pytest.mark.long],
        )
        for chore in CHORES
        for seed in (1, 2, 3)
    ]


@pytest.mark.parametrize(("chore", "seed"), cases())
def test_a_chore_of_several_steps_converges(tmp_path, chore, seed):
    """Draft, diagnose, mend: the hidden checker finds nothing wrong, whatever the files are."""
    folder = tmp_path / "work"
    folder.mkdir()
    chore.make(folder, random.Random(seed))
    scripts = Scripts([json.dumps(reply) for reply in chore.replies])
    order = order_for(folder, chore.task, planner="openai/scripted", accept=chore.accept)

    with kit_in(tmp_path / "home", scripts=scripts) as kit:
        finished = new(kit, order, emit=lambda *event: None).run()
        attempts = history(kit, finished.session).attempts

    tried = [(each.verdict, each.proposal.summary[:60], each.reason) for each in attempts]
    assert finished.outcome == "converged", tried
    assert chore.wrong(folder) == "", tried
    assert finished.edits >= 2, tried
