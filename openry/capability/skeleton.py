"""A tool of one's own to begin with: a definition that runs, and what to change in it."""

from __future__ import annotations

from pathlib import Path

from openry.capability.definition import is_name
from openry.capability.registry import Registry
from openry.errors import UsageError

_COMMAND = """\
name: {name}
# What models choose by: what it does, when to use it, when not.
description: >-
  Count the bytes of a file. Use it for sizes. Not for lines (count_lines).
parameters:
  # role says what in a request fills it: input, output, needle, count, text, choice, flag, ...
  path: {{type: string, format: path, role: input, required: true, description: The file to read.}}
  output:
    type: string
    format: path
    role: output
    description: File to write the result to. Without it the result is the answer.
returns: {{format: text, description: The number of bytes.}}
# Words of a program, never a shell line; a list of such lists is a pipeline.
{runs}
output_parser: auto
timeout: 60
# side_effects: none | writes | network | irreversible; requires_confirmation: true asks a person.
side_effects: none
# What must hold afterwards, whatever the program says.
ensures:
  - {{type: file_exists, path: "{{output}}"}}
# Requests in a person's words with the arguments they mean; `openry capability test` runs them.
examples:
  - {{request: How many bytes has hello.txt?, arguments: {{path: hello.txt}}{result}}}
  - request: Write the size of hello.txt to size.txt
    arguments: {{path: hello.txt, output: size.txt}}
fixtures: {{hello.txt: "hello\\n"}}
"""
_PYTHON = '''\
"""What `{name}` does; run as a child process, with the arguments by name."""

from __future__ import annotations

from pathlib import Path

from openry.capability.builtin.failure import ToolFailure


def {name}(path: str) -> bytes:
    """The result, as bytes or an iterator of bytes; a ToolFailure says its class and why."""
    content = Path(path).read_bytes()
    if not content:
        raise ToolFailure("bad_arguments", f"`{{path}}` is empty")
    return f"{{len(content)}}\\n".encode()
'''


def write_skeleton(
    registry: Registry, name: str, folder: Path, *, python: bool
) -> tuple[Path, ...]:
    """Write the files of a new tool into the pack `folder`.

    Args:
        python: Carried out by a Python function beside the definition instead of a program.

    Raises:
        UsageError: The name is no name of a tool or is taken, or nothing can be written there.
    """
    if not is_name(name):
        raise UsageError(f"`{name}` must be small letters, digits and `_`")
    if name in registry:
        raise UsageError(f"`{name}` is taken: {registry.entry(name).source}")
    runs = f"python: ./{name}.py:{name}" if python else 'command_template: [wc, -c, --, "{path}"]'
    result = ", result: 6" if python else ""
    texts = {folder / f"{name}.yaml": _COMMAND.format(name=name, runs=runs, result=result)}
    if python:
        texts[folder / f"{name}.py"] = _PYTHON.format(name=name)
    there = next((path for path in texts if path.exists()), None)
    if there is not None:
        raise UsageError(f"`{there}` is there already")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path, text in texts.items():
            path.write_text(text, "utf-8")
    except OSError as error:
        raise UsageError(f"`{error.filename}` cannot be written: {error.strerror}") from error
    return tuple(texts)
