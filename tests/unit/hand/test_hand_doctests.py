"""Examples in docstrings are run: one that nobody runs goes wrong quietly."""

from __future__ import annotations

import doctest
from importlib import import_module

import pytest

MODULES = (
    "openry.cli.moments openry.forwarder.environment openry.output.capture openry.output.fold"
    " openry.output.digest openry.output.kinds openry.output.redact openry.output.slices"
    " openry.output.tokens openry.sandbox.hosts openry.sandbox.proxy openry.texts"
    " openry.sandbox.seatbelt openry.sandbox.windows"
).split()


@pytest.mark.parametrize("name", MODULES)
def test_examples_hold(name: str):
    """As they stand."""
    failed, tried = doctest.testmod(import_module(name))

    assert (failed, tried > 0) == (0, True)
