"""Numbers of `--input` are read as people write them."""

from __future__ import annotations

import pytest

from openry.errors import UsageError
from openry.orchestrator.inputs import check_inputs
from openry.orchestrator.spec import InputSpec


@pytest.mark.parametrize("text", ["1_0", "٣", "0x10", "1e", "", "nan", "inf", "1e999", "--1"])
@pytest.mark.parametrize("kind", ["int", "number"])
def test_what_only_python_takes_for_a_number_is_refused(kind: str, text: str):
    """One sentence with what was given."""
    specs = {"n": InputSpec.model_validate({"type": kind})}

    with pytest.raises(UsageError, match=r"input `n` must be a (whole )?number, got `"):
        check_inputs(specs, {"n": text})


@pytest.mark.parametrize(("text", "value"), [("10", 10), ("-3", -3), ("2.5", 2.5), (" 1e3 ", 1000)])
def test_numbers_are_read(text: str, value: float):
    """Whole ones stay whole."""
    specs = {"n": InputSpec.model_validate({"type": "number"})}

    assert check_inputs(specs, {"n": text}) == {"n": value}
