"""The README's shell blocks: read, run, compared with the output that stands below them.

`python tests/e2e/readme.py` runs the tour and writes what it really printed into both READMEs.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
READMES = ("README.md", "README.zh-CN.md")
#: Where the README pretends to stand; what runs elsewhere is shown as if it were there.
SHOWN_AT = "~/openry"
_BLOCK = re.compile(
    r"(?P<before>(?:<!-- not run: (?P<why>[^>]*) -->\n)?)```sh\n(?P<code>.*?)^```\n"
    r"(?:\n?```text\n(?P<output>.*?)^```\n)?",
    re.DOTALL | re.MULTILINE,
)
_MARK = "--- end of block ---"
#: What differs from run to run: times, ids, dates, hashes.
_VARYING = (
    (re.compile(r"\b\d{8}-[0-9a-f]{8}\b"), "SESSION"),
    (re.compile(r"\b[0-9a-f]{12}\b"), "INSTANCE"),
    (re.compile(r"^head [0-9a-f]{64}$", re.MULTILINE), "head HEAD"),
    (re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z"), "TIME"),
    (re.compile(r'((?:duration_ms|execution_time)\\?": )[\d.]+'), r"\1N"),
    (re.compile(r"(?<![\w.])\d+\.\d s\b"), "N s"),
    (re.compile(r" +\d+ ms"), " N ms"),
    (re.compile(r"manual#\d+ *"), "manual#N "),
)


@dataclass(frozen=True)
class Block:
    """One shell block. `output` is what the README says it prints; None when it shows nothing."""

    code: str
    output: str | None
    not_run: str


def blocks(text: str) -> list[Block]:
    """The shell blocks of a README, in order."""
    found = _BLOCK.finditer(text)
    return [Block(each["code"], each["output"], each["why"] or "") for each in found]


def masked(output: str) -> str:
    """`output` without what differs from run to run."""
    for pattern, word in _VARYING:
        output = pattern.sub(word, output)
    return "\n".join(line.rstrip() for line in output.strip().splitlines())


def run(codes: list[str], place: Path) -> list[str]:
    """Run blocks one after another in one shell, as a reader would; what each printed.

    Args:
        place: An empty folder that stands for a clone in which `make setup` was run.
    """
    home = place / "home"
    home.mkdir()
    clone = place / "openry"
    clone.mkdir()
    for name in ("demo", "workflows", "templates"):
        (clone / name).symlink_to(ROOT / name)
    (clone / ".venv").symlink_to(sys.prefix)
    script = f"\necho '{_MARK}'\n".join(["set -eu", *codes, ""])
    kept = {key: text for key, text in os.environ.items() if not key.startswith("OPENRY_")}
    env = {**kept, "HOME": str(home), "COLUMNS": "100", "LC_ALL": "C.UTF-8"}
    done = subprocess.run(
        ("sh", "-c", script), cwd=clone, env=env, capture_output=True, text=True, check=False
    )
    printed = done.stdout.replace(str(clone), SHOWN_AT).split(f"{_MARK}\n")[1:]
    if done.returncode or done.stderr:
        raise AssertionError(f"exit {done.returncode}: {done.stderr}\nafter:\n{done.stdout}")
    return printed[: len(codes)]


def rewritten(text: str, printed: list[str]) -> str:
    """The README with what its blocks printed."""
    outputs = iter(printed)

    def put(found: re.Match[str]) -> str:
        if found["why"]:
            return found[0]
        said = next(outputs)
        if found["output"] is None:
            return found[0]
        shown = "\n".join(line.rstrip() for line in said.strip("\n").splitlines())
        return found[0].replace(f"```text\n{found['output']}```", f"```text\n{shown}\n```")

    return _BLOCK.sub(put, text)


def _main() -> None:
    texts = {name: (ROOT / name).read_text("utf-8") for name in READMES}
    codes = [block.code for block in blocks(texts[READMES[0]]) if not block.not_run]
    with tempfile.TemporaryDirectory() as place:
        printed = run(codes, Path(place))
    for name, text in texts.items():
        (ROOT / name).write_text(rewritten(text, printed), "utf-8")


if __name__ == "__main__":
    _main()
