"""Floods, giant lines, bytes of every kind: what reaches the agent, and in how much memory."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hand_helpers import PROGRAM, OpenRY

MIB = 1024 * 1024


def test_bytes_that_are_not_utf8_become_replacement_characters(openry: OpenRY):
    """One line of valid JSON whatever is printed, in whatever locale (B09)."""
    line = r"printf 'head \377\376 \303 tail\n'; head -c 3000 /dev/urandom"

    answer = openry("-c", line, env={"LC_ALL": "C"})

    assert answer["stdout"].startswith("head \ufffd\ufffd \ufffd tail\n")
    answer["stdout"].encode("utf-8")


def test_terminal_noise_is_folded(openry: OpenRY):
    """Of a redrawn line only the last frame is left (B11); --raw keeps every frame."""
    (openry.cwd / "bar.py").write_text(
        "import sys\n"
        "for i in range(5000):\n"
        "    sys.stdout.write('\\r%5d/5000 [%s]' % (i, '#' * (i // 100)))\n"
        "print('\\nresult=42')\n"
    )
    line = f"{sys.executable} bar.py"

    folded, raw = openry("-c", line)["stdout"], openry("-c", line, "--raw")["stdout"]

    assert folded == f" 4999/5000 [{'#' * 49}]\nresult=42\n"
    assert raw.count("\r") == 5000


def test_colours_go_and_nul_is_visible(openry: OpenRY):
    """ANSI codes are taken out; a NUL byte can be seen."""
    line = r"printf '\033[1;31mred\033[0m \033]0;title\007a\000b\r\n'"

    assert openry("-c", line)["stdout"] == "red a\u2400b\n"
    assert openry("-c", line, "--raw")["stdout"].startswith("\x1b[1;31mred")


def test_one_gigantic_line_is_bounded(openry: OpenRY):
    """Limits are by size, not by lines (B13): both ends, a notice, the whole in a file."""
    (openry.cwd / "big.js").write_text("x" * 3_000_000 + "NEEDLE" + "y" * 3_000_000)

    answer = openry("-c", "grep -n NEEDLE big.js")

    out = answer["stdout"]
    assert len(out) < 1.1 * MIB
    assert out.startswith("1:xxx")
    assert out.endswith("yyy\n")
    assert "[openry] " in out
    spill = openry.rows()[0]["spill_path"]
    with open(spill, "rb") as file:
        kept = file.read()
    assert len(kept) == openry.rows()[0]["stdout_bytes"] == 6_000_009
    assert hashlib.sha256(kept).hexdigest() == openry.rows()[0]["stdout_digest"]


@pytest.mark.parametrize("limit", [1000, 1001, 1002, 1003])
def test_no_cut_splits_a_character(openry: OpenRY, limit: int):
    """Whatever the limit, head and tail hold whole characters (B27)."""
    openry.home.mkdir(mode=0o700)
    (openry.home / "config.yaml").write_text(f"output: {{answer_limit_bytes: {limit}}}\n")
    line = f"{sys.executable} -c \"print('ab' + chr(0x1F600) * 40000)\""

    out = openry("-c", line)["stdout"]

    head, _, rest = out.partition("\n[openry] ")
    tail = rest.partition("\n")[2]
    assert set(head) == {"a", "b", "\U0001f600"}
    assert set(tail) == {"\U0001f600", "\n"}
    assert len((head + tail).encode()) <= limit


def _peak_mib(openry: OpenRY, line: str, *more: str) -> tuple[dict, float]:
    """The answer to `line` and how much memory `openry` itself took."""
    code = (
        "import resource, subprocess, sys\n"
        "done = subprocess.run(sys.argv[1:], capture_output=True)\n"
        "sys.stdout.buffer.write(done.stdout)\n"
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024)\n"
    )
    args = [sys.executable, "-c", code, PROGRAM, "-c", line, *more]
    out = subprocess.run(args, capture_output=True, env=openry.env, cwd=openry.cwd, timeout=120)
    answer, peak = out.stdout.decode().strip().rsplit("\n", 1)
    return json.loads(answer), float(peak)


def test_a_flood_does_not_fill_memory(openry: OpenRY):
    """At most 64 MiB resident whatever is printed (B15); the file that keeps it is bounded."""
    openry.home.mkdir(mode=0o700)
    (openry.home / "config.yaml").write_text(f"output: {{spill_limit_bytes: {5 * MIB}}}\n")
    openry("-c", "true")  # making a ledger imports SQLAlchemy

    answer, peak_mib = _peak_mib(openry, "yes", "--timeout", "1")

    row = openry.rows()[1]
    assert answer["exit_code"] == 124
    assert row["stdout_bytes"] > 8 * MIB
    assert 0 < len(answer["stdout"]) < 1.1 * MIB
    assert peak_mib <= 64
    assert (openry.home / "runs" / "manual").stat().st_mode & 0o777 == 0o700
    with open(row["spill_path"], "rb") as spill:
        assert spill.seek(0, 2) == 5 * MIB
    assert "except the last" in answer["stdout"]


def test_errors_are_bounded_too(openry: OpenRY):
    """Standard error has the same limits as standard output."""
    answer = openry("-c", "head -c 3000000 /dev/zero | tr '\\0' e >&2")

    assert len(answer["stderr"]) < 1.1 * MIB
    assert "[openry] " in answer["stderr"]


def test_reading_a_flood_costs_a_bounded_time(openry: OpenRY):
    """Tens of megabytes for each second of processor time, its own and the command's."""
    process = openry.start("-c", "head -c 60000000 /dev/zero | tr '\\0' 'a'")
    with process.stdout, process.stderr:
        process.stdout.read()
    _, status, spent = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)

    assert process.returncode == 0
    assert spent.ru_utime + spent.ru_stime < 12


def test_a_large_output_is_kept_compressed(openry: OpenRY):
    """Every byte of it, in a file that only its owner may read; the answer names it."""
    answer = openry("-c", "seq 1 4000000")

    row = openry.rows()[0]
    spill = Path(row["spill_path"])
    assert spill.suffix == ".gz"
    assert spill.name in answer["stdout"]
    assert spill.stat().st_mode & 0o777 == 0o600
    assert spill.stat().st_size < row["stdout_bytes"] / 2
    digest, size = hashlib.sha256(), 0
    with gzip.open(spill) as file:
        while part := file.read(MIB):
            digest.update(part)
            size += len(part)
    assert (digest.hexdigest(), size) == (row["stdout_digest"], row["stdout_bytes"])
    assert [path.name for path in spill.parent.iterdir()] == [spill.name]
