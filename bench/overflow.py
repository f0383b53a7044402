"""Large outputs: what a digest finds, beside cutting both ends; how fast, in how much memory.

The samples are those of `../shared/cases/logs`, or of the folder in OPENRY_BENCH_LOGS: real logs of
two thousand lines each, `NAME_2k.log`, grown by the script beside them (`../tools/plant_facts.py`)
which plants the facts. Without samples only the speeds are measured.
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from importlib.util import find_spec
from pathlib import Path
from statistics import fmean

from bench.measure import BIN, Row, environment, in_turns, middle, run
from openry.config import load_config
from openry.forwarder import Hand
from openry.ledger.fast import FastLedger
from openry.models import Command, RunContext
from openry.output.digest import digest_of, reads_of
from openry.output.tokens import estimate_tokens

HERE = Path(__file__).parent.parent
MIB = 1_000_000
SIZES = ((10_000, 0.95), (20_000, 0.97))
SEEDS, MEGABYTES = (1,), 5


def overflow(place: Path) -> list[Row]:
    """Recall for each kind of log, then speed, memory, and what an agent's answer takes."""
    logs = Path(os.environ.get("OPENRY_BENCH_LOGS", HERE.parent / "shared" / "cases" / "logs"))
    tool = HERE.parent / "shared" / "tools" / "plant_facts.py"
    samples = sorted(logs.glob("*_2k.log")) if tool.is_file() else []
    rows = _recall(place, samples, tool) if samples else []
    return [*rows, *_speed(place, samples, tool), *_notices(place, samples)]


# --- recall -----------------------------------------------------------------------------------


def _recall(place: Path, samples: list[Path], tool: Path) -> list[Row]:
    found: dict[int, list[float]] = {size: [] for size, _ in SIZES}
    cut: dict[int, list[float]] = {size: [] for size, _ in SIZES}
    grepped: list[float] = []
    rows = []
    for sample in samples:
        here: dict[int, list[float]] = {size: [] for size, _ in SIZES}
        for seed in SEEDS:
            grown = place / "grown.log"
            keys = _grow(tool, sample, MEGABYTES, seed, grown)
            data = grown.read_bytes()
            for size, _ in SIZES:
                here[size].append(_share(keys, _digest_of_size(grown, size)))
                both = data[: size // 2] + data[-size // 2 :]
                cut[size].append(_share(keys, both.decode("utf-8", "replace")))
            grepped.append(_share(keys, _grep(grown)))
        for size in here:
            found[size] += here[size]
        first, second = (round(fmean(here[size]), 3) for size, _ in SIZES)
        rows.append(Row(f"recall, {sample.stem[:-3]}, 10 kB (20 kB: {second})", first, ""))
    for size, target in SIZES:
        ours, theirs = round(fmean(found[size]), 3), round(fmean(cut[size]), 3)
        what = f"recall of {len(samples)} kinds of logs in {size // 1000} kB"
        rows.append(Row(what, ours, "", "head and tail", theirs, f">= {target}", ours >= target))
    every = round(fmean(grepped), 3)
    rows.append(Row("facts found by one `output grep`", every, "", target="1", met=every == 1))
    return rows


def _grow(tool: Path, sample: Path, megabytes: int, seed: int, grown: Path) -> list[str]:
    argv = (sys.executable, str(tool), str(sample), str(megabytes), str(seed), str(grown))
    facts = json.loads(subprocess.run(argv, check=True, capture_output=True).stdout)
    return [key for _, key in facts]


def _share(keys: Iterable[str], text: str) -> float:
    keys = list(keys)
    return sum(key in text for key in keys) / len(keys)


def _digest_of_size(file: Path, size: int) -> str:
    """The digest whose text is at most so many bytes."""
    tokens = size / 2
    while True:
        with file.open("rb") as opened:
            text = digest_of(reads_of(opened.read), int(tokens))
        if len(text.encode()) <= size:
            return text
        tokens *= 0.98 * size / len(text.encode())


def _grep(file: Path) -> str:
    argv = (BIN / "openry", "output", "grep", file, "K[bcdfgh2-9]{9}", "--max", "100")
    return subprocess.run(argv, check=True, capture_output=True).stdout.decode()


#: `openry output …`, then its own peak: what a parent counts for a child begins with the parent's.
_DIGEST = """
import sys
from openry.cli import main
main(["output", *sys.argv[1:]])
print(*(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")))
"""


# --- speed and memory -------------------------------------------------------------------------


def _speed(place: Path, samples: list[Path], tool: Path) -> list[Row]:
    log, noise, huge = place / "log.txt", place / "noise.txt", place / "huge.txt"
    if samples:
        _grow(tool, samples[0], 50, 1, log)
    else:
        log.write_text("".join(f"2026-03-01 INFO request {n} ok\n" for n in range(1_500_000)))
    part = log.read_bytes()
    noise.write_bytes(base64.encodebytes(os.urandom(30 * MIB)))
    with huge.open("wb") as file:
        for _ in range(1000 * MIB // len(part) + 1):
            file.write(part)
    rows = []
    for name, path, target in (("a log of 1 GB", huge, 100), ("noise of 40 MB", noise, 8)):
        argv = (sys.executable, "-c", _DIGEST, "digest", str(path))
        spent = run(argv, cwd=place, env=environment(place))
        speed = round(path.stat().st_size / MIB / (spent.cpu_ms / 1000), 1)
        what = f"digest of {name}: MB a second of CPU"
        rows.append(Row(what, speed, "/s", target=f">= {target}", met=speed >= target))
        peak = round(int(spent.output.splitlines()[-1]) / 1024, 1)
        row = Row(f"digest of {name}: peak memory", peak, "MiB", target="<= 64", met=peak <= 64)
        rows.append(row)
    huge.unlink()
    return rows


# --- answers ----------------------------------------------------------------------------------


def _notices(place: Path, samples: list[Path]) -> list[Row]:
    """What an agent reads of 100 MB: how much later, and how many tokens that really is."""
    home = place / "home"
    home.mkdir(mode=0o700, exist_ok=True)
    config = load_config(home, env={})
    part, large = (place / "log.txt").read_bytes(), place / "large.txt"
    large.write_bytes((part * 3)[: 100 * MIB])
    with FastLedger(config.ledger) as ledger:

        def call(limit: int) -> Callable[[], float]:
            hand = Hand(ledger, RunContext(workspace=str(place), max_output_tokens=limit), config)

            def spent() -> float:
                began = time.process_time()
                hand.forward(Command("cat large.txt"))
                return time.process_time() - began

            return spent

        with_notice, without = (middle(each) for each in in_turns(2, call(8000), call(0)))
        late = round(with_notice - without, 2)
        rows = [Row("notice of 100 MB: added CPU", late, "s", target="<= 2", met=late <= 2)]
        answers = []
        for sample in samples:
            context = RunContext(workspace=str(sample.parent), max_output_tokens=8000)
            said = Hand(ledger, context, config).forward(Command(f"cat {sample.name}"))
            answers.append(said.stdout)
    return [
        *rows,
        *_on_real_tokenizers(answers, [sample.read_text("utf-8", "replace") for sample in samples]),
    ]


def _on_real_tokenizers(answers: list[str], texts: list[str]) -> list[Row]:
    """The largest answer and the error of the estimate, by tokenizers that are here."""
    count = _tokenizers()
    if not answers or not count:
        return []
    most = max(each(answer) for each in count for answer in answers)
    off = []
    for text in texts:
        real = fmean(each(text) for each in count)
        off.append(abs(estimate_tokens(text) / real - 1))
    worst = round(100 * max(off), 1)
    mean = round(100 * fmean(off), 1)
    return [
        Row(
            "largest answer at a limit of 8,000, really",
            most,
            "",
            target="<= 8,800",
            met=most <= 8800,
        ),
        Row(f"estimate, off by (mean {mean})", worst, "%", target="<= 10", met=worst <= 10),
    ]


def _tokenizers() -> list[Callable[[str], int]]:
    """Those that come with what is installed."""
    spec = find_spec("litellm")
    if spec is None or spec.origin is None or find_spec("tokenizers") is None:
        return []
    from tokenizers import Tokenizer

    folder = Path(spec.origin).parent / "litellm_core_utils" / "tokenizers"
    made = [Tokenizer.from_file(str(path)) for path in sorted(folder.glob("*_tokenizer.json"))]

    def counter(made: Tokenizer) -> Callable[[str], int]:
        return lambda text: len(made.encode(text).ids)

    return [counter(one) for one in made]
