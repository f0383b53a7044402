"""The script a Python tool's child process starts: `python -I -S child.py module:function`.

`openry` and `openry.capability` are put in place as bare packages, so that neither their
`__init__` nor the site packages are loaded: that is most of a child's start.
"""

from __future__ import annotations

import os
import sys


def _bare_package(name: str, folder: str) -> None:
    package = type(sys)(name)
    package.__path__ = [folder]
    sys.modules[name] = package


if __name__ == "__main__":
    here = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120
    _bare_package("openry", os.path.dirname(here))  # noqa: PTH120
    _bare_package("openry.capability", here)
    from openry.capability.builtin.runner import main

    sys.exit(main(sys.argv[1]))
