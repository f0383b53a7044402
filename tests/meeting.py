"""A tool whose calls end only when several are under way at the same time."""

from __future__ import annotations

from pathlib import Path

_TOOL = """
name: meet
description: Says that it is there, and waits until all the others are as well.
parameters:
  output: {type: string, format: path, role: output, required: true, description: Its own file.}
  others: {type: array, items: {type: string}, required: true, description: Files of the others.}
python: ./meet.py:meet
side_effects: writes
output_file: ""
examples:
  - {request: meet b as a, arguments: {output: a, others: [b]}}
"""
_CODE = """
import os, time
from pathlib import Path

def meet(output, others):
    Path(output).write_text("here")
    until = time.monotonic() + 60
    while not all(os.path.exists(one) for one in others):
        if time.monotonic() > until:
            raise TimeoutError("nobody came")
        time.sleep(0.01)
"""


def meeting_pack(folder: Path) -> Path:
    """A pack with the tool `meet`, made in `folder`."""
    pack = folder / "meeting"
    pack.mkdir(parents=True)
    (pack / "meet.yaml").write_text(_TOOL)
    (pack / "meet.py").write_text(_CODE)
    return pack
