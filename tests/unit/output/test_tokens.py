"""Estimated tokens: near what real tokenizers make, cheap, and safe for what is no text."""

from __future__ import annotations

import random
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openry.output.tokens import (
    MARGIN,
    estimate_bytes,
    estimate_tokens,
    weigh,
    weigh_single_digits,
)

LOGS = Path(__file__).parents[4] / "shared" / "cases" / "logs"
HERE = Path(__file__).parents[3]


def texts():
    """Some of many kinds, each a few tens of kilobytes."""
    pick = random.Random(3)
    found = {path.name: path.read_text("utf-8", "replace")[:40_000] for path in LOGS.glob("*.log")}
    found["prose"] = (HERE / "README.md").read_text()
    found["code"] = (HERE / "openry" / "output" / "digest.py").read_text()
    found["hex"] = "\n".join(pick.randbytes(16).hex() for _ in range(600))
    found["csv"] = "\n".join(
        ",".join(str(pick.randrange(10**6)) for _ in range(6)) for _ in range(600)
    )
    return found


@pytest.fixture(scope="module")
def tokenizers():
    """Real ones, where they are installed: they come with what we depend on."""
    spec = find_spec("litellm")
    folder = Path(spec.origin).parent / "litellm_core_utils" / "tokenizers" if spec else Path("/-")
    files = [folder / f"{maker}_tokenizer.json" for maker in ("anthropic", "deepseek")]
    if not all(path.is_file() for path in files):
        pytest.skip("the tokenizers are not here")
    read = pytest.importorskip("tokenizers").Tokenizer.from_file
    made = [read(str(path)) for path in files]
    return [lambda text, one=one: len(one.encode(text).ids) for one in made]


def test_estimates_are_near_real_tokenizers(tokenizers):
    """On logs, prose, code, hexadecimal and CSV: 15 % at most, 7 % on average, beside the mean."""
    off = {}
    for name, text in texts().items():
        real = sum(count(text) for count in tokenizers) / len(tokenizers)
        off[name] = estimate_tokens(text) / real - 1
    assert {name: share for name, share in off.items() if abs(share) > 0.15} == {}
    assert sum(map(abs, off.values())) / len(off) < 0.07


@pytest.mark.model
def test_a_small_models_digits_are_counted_one_by_one():
    """The fit for SmolLM2, beside its own tokenizer."""
    pytest.importorskip("xllamacpp")
    from openry.llm.local import open_local

    count = open_local("local/smollm2").count_tokens
    off = {
        n: weigh_single_digits(t[:12_000].encode()) / count(t[:12_000]) for n, t in texts().items()
    }
    assert {name: share for name, share in off.items() if not 0.8 <= share <= 1.2} == {}


def test_a_quarter_of_the_characters_would_be_too_few_for_logs():
    """What others take for an estimate finds about two thirds of it."""
    line = "2026-03-01 09:00:01,250 INFO dfs.DataNode: Received block blk_-160 of size 91178\n"
    assert len(line) / 4 < 0.7 * estimate_tokens(line)


@given(st.text(max_size=400))
def test_a_text_has_no_more_tokens_than_bytes(text):
    """Nor does the estimate say less than nothing, whatever the text."""
    size = len(text.encode("utf-8", "surrogatepass"))
    assert 0 <= estimate_tokens(text) <= 1.4 * size + 1


@given(st.binary(max_size=600), st.binary(max_size=600))
def test_two_texts_together_are_about_as_much_as_both(one, other):
    """So lines may be weighed one by one."""
    for by in (weigh, weigh_single_digits):
        assert by(one + b"\n" + other) <= by(one + b"\n") + by(other) + 2


def test_a_large_text_is_judged_by_samples():
    """Sixteen of them, spread over it: a change in its middle is seen."""
    data = b"INFO ok 17\n" * 100_000 + b"\xe4\xb8\xad" * 300_000
    assert estimate_bytes(data) == pytest.approx(weigh(data), rel=0.1)
    assert MARGIN > 1
