"""The gates' own self-test: what chance, cheats and obedient planners bring through."""

from __future__ import annotations

import pytest

from loop import attacks, selftest
from loop.kit import Kit
from loop.simulator import MODES, Simulator
from openry.config import load_config


@pytest.fixture
def kit(tmp_path):
    """A kit that need not read sentences."""
    with Kit(load_config(tmp_path / "home", env={})) as made:
        yield made


@pytest.mark.parametrize("count", [10, pytest.param(200, marks=pytest.mark.long)])
def test_chance_gets_nothing_through_and_merit_does(count):
    """Copies hardly ever pass, twenty points more mostly do, twenty points less never."""
    figures = selftest.statistics(count)

    assert [figure.what for figure in figures if not figure.right] == []


@pytest.mark.sandbox
@pytest.mark.parametrize("part", [10, pytest.param(1, marks=pytest.mark.long)])
def test_no_cheat_and_no_injected_order_passes(kit, part):
    """Forty cheating and thirty injected proposals: none passes, and the honest ones do."""
    figures = selftest.attacks(kit, lambda number: number % part == 0)

    assert [figure.what for figure in figures if not figure.right] == []


def test_the_suites_are_as_large_as_they_are_said_to_be():
    """At least 40 cheats and 25 injections, no two alike."""
    for suite, least in ((attacks.ADVERSARIAL, 40), (attacks.INJECTIONS, 25)):
        assert len({repr(edits) for edits in suite}) == len(suite) >= least


def test_in_the_simulator_the_yaml_decides_the_rates():
    """A narrowed answer and an example make a step fail less; the same draw gives the same run."""
    plain = {"id": "a", "kind": "agent", "description": "x" * 100}
    narrowed = {**plain, "validation": [{"type": "payload_value_in_set"}]}
    world = Simulator(1, MODES)

    assert world.chance(plain) < world.chance(narrowed)
    text = "sub_steps:\n  - {id: a, kind: agent, description: do it}\n"
    assert world.run(text, 3) == world.run(text, 3)
    share = sum(world.run(text, draw).acceptable for draw in range(400)) / 400
    assert abs(share - world.chance({"kind": "agent", "description": "do it"})) < 0.08
