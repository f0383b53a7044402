"""A large output is kept compressed: every byte of it, or a plain word why not."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from pathlib import Path

import pytest

from openry.output.packing import PackedFile

LINE = b"2026-04-13 08:06:01 ERROR payments  order 1002: card declined by the bank\n"


def kept(folder: Path, chunks: list[bytes], *, large: int) -> Path:
    file = PackedFile(open(folder / "out", "wb"), large=large)  # noqa: SIM115  # closed by it
    for chunk in chunks:
        file.write(chunk)
    file.close()
    return Path(file.name)


@pytest.mark.parametrize("size", [1, 50, 100, 101, 5000, 100_000])
def test_what_was_written_can_be_read_again(tmp_path: Path, size: int):
    """Plain while it is small, compressed once it is large; never both."""
    data = LINE * 3000
    chunks = [data[place : place + size] for place in range(0, len(data), size)][:4000]

    path = kept(tmp_path, chunks, large=10_000)

    packed = path.name == "out.gz"
    assert packed == (sum(map(len, chunks)) > 10_000)
    assert (gzip.decompress(path.read_bytes()) if packed else path.read_bytes()) == b"".join(chunks)
    assert [one.name for one in tmp_path.iterdir()] == [path.name]
    assert not packed or path.stat().st_mode & 0o777 == 0o600


def test_what_does_not_shrink_stays_as_it_is(tmp_path: Path):
    """Random bytes cost time and save nothing."""
    data = os.urandom(50_000)

    path = kept(tmp_path, [data, data], large=10_000)

    assert (path.name, path.read_bytes()) == ("out", data * 2)


def test_a_name_that_is_taken_is_left_alone(tmp_path: Path):
    """Then the file stays plain: nothing is overwritten, no link is followed."""
    (tmp_path / "out.gz").symlink_to("/etc/passwd")

    path = kept(tmp_path, [LINE * 500, LINE], large=1000)

    assert (path.name, path.read_bytes()) == ("out", LINE * 501)


def test_a_file_that_can_grow_no_more_says_so(tmp_path: Path):
    """The writer never waits for ever; it hears of the trouble at the next write or at the end."""
    code = (
        "import os, resource, signal, sys\n"
        "from openry.output.packing import PackedFile\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))\n"
        "file = PackedFile(open(sys.argv[1], 'wb'), large=1000)\n"
        "try:\n"
        "    for _ in range(200): file.write(os.urandom(50_000).hex().encode())\n"
        "    file.close()\n"
        "except OSError as error: print(error.strerror)\n"
    )

    done = subprocess.run(
        [sys.executable, "-c", code, tmp_path / "out"], capture_output=True, text=True, timeout=60
    )

    assert (done.stdout, done.stderr) == ("File too large\n", "")
