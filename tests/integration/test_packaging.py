"""The wheel that people install: every data file in it, and three commands that start."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

DATA = ("templates", "overflow_workflows", "workflows")
COMMANDS = ("openry", "openry-orchestrator", "openry-loop")


@pytest.fixture(scope="module")
def wheel(source, tmp_path_factory) -> Path:
    """The wheel, built without a network from a copy of what Git would clone."""
    folder = tmp_path_factory.mktemp("packaging")
    tree = folder / "source"
    for name in _tracked(source):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source / name, tree / name)
    build = ("-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--no-index")
    _run(sys.executable, *build, "--wheel-dir", str(folder), str(tree), cwd=folder)
    (built,) = folder.glob("openry-*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory) -> Path:
    """A fresh environment with the wheel in it; what it depends on is lent by this one."""
    env = tmp_path_factory.mktemp("installed") / "venv"
    _run(sys.executable, "-m", "venv", "--without-pip", str(env), cwd=wheel.parent)
    pip = ("-m", "pip", "--python", str(env / "bin" / "python"), "install")
    _run(sys.executable, *pip, "--no-deps", "--no-index", str(wheel), cwd=wheel.parent)
    (site,) = env.glob("lib/python*/site-packages")
    lent = [path for path in sys.path if path.endswith("site-packages")]
    # As plain paths: their own .pth files, of which one leads to the source tree, are not read.
    (site / "lent.pth").write_text("\n".join(lent) + "\n")
    return env


def test_the_wheel_carries_every_data_file(source, wheel):
    """What lies in the data folders lies in the wheel, byte for byte, and nothing else does."""
    tracked = {name for name in _tracked(source) if name.split("/")[0] in DATA}

    with zipfile.ZipFile(wheel) as archive:
        prefix = "openry/_data/"
        packed = {name.removeprefix(prefix) for name in archive.namelist() if prefix in name}
        assert packed == tracked
        for name in tracked:
            assert archive.read(prefix + name) == (source / name).read_bytes(), name


def test_the_programs_of_a_step_can_be_started(wheel):
    """`blackboard` and `blackboard-lock` are programs in the wheel too."""
    with zipfile.ZipFile(wheel) as archive:
        for name in ("blackboard", "blackboard-lock"):
            mode = archive.getinfo(f"openry/session/programs/{name}").external_attr >> 16
            assert mode & 0o111 == 0o111, name


def test_an_installed_openry_lists_its_data(source, installed, tmp_path):
    """`data_root()` leads into the wheel: every pack, prompt and workflow is there and loads."""
    code = """
import json, openry
from openry.capability import load_registry
from openry.data import data_root
from openry.orchestrator.loader import load
root = data_root()
print(json.dumps({
    "package": openry.__file__,
    "root": str(root),
    "files": sorted(str(p.relative_to(root)) for p in root.rglob("*") if p.is_file()),
    "tools": sorted(load_registry().names()),
    "bad": [str(p) for p in root.glob("workflows/*.yaml") if load(p).errors],
}))
"""
    found = json.loads(_run(str(installed / "bin" / "python"), "-c", code, cwd=tmp_path))

    assert found["package"].startswith(str(installed))
    assert found["root"].startswith(str(installed))
    expected = {name for name in _tracked(source) if name.split("/")[0] in DATA}
    assert {name for name in found["files"] if "__pycache__" not in name} == expected
    packs = {Path(name).stem for name in expected if _is_tool(name)}
    assert set(found["tools"]) == packs
    assert found["bad"] == []


@pytest.mark.parametrize("command", COMMANDS)
def test_the_commands_start(installed, tmp_path, command):
    """Each console script of the installed wheel answers --help."""
    said = _run(str(installed / "bin" / command), "--help", cwd=tmp_path)

    assert command in said


def test_an_installed_openry_forwards_a_command(installed, tmp_path):
    """The hand works from the wheel, with its ledger made by the packed migrations."""
    said = _run(str(installed / "bin" / "openry"), "-c", "echo hello world", cwd=tmp_path)

    assert json.loads(said)["stdout"] == "hello world\n"
    assert (tmp_path / "home" / "openry.db").is_file()


def _is_tool(name: str) -> bool:
    parts = Path(name).parts
    return parts[:2] == ("templates", "capabilities") and parts[-1].endswith(".yaml") and (
        parts[-1] != "pack.yaml"
    )  # fmt: skip


def _tracked(source: Path) -> list[str]:
    """Every file of the source tree that Git knows, or without Git whatever is there."""
    if not (source / ".git").exists():
        made = (".venv", "__pycache__", "demo-out", "build", "dist")
        files = [path.relative_to(source) for path in source.rglob("*") if path.is_file()]
        return sorted(str(path) for path in files if not {*path.parts} & {*made})
    known = ("git", "-C", str(source), "ls-files", "-z", "--cached", "--others")
    names = _run(*known, "--exclude-standard", cwd=source).split("\0")
    return sorted({name for name in names if name and (source / name).is_file()})


def _run(*argv: str, cwd: Path) -> str:
    env = {"PATH": os.environ["PATH"], "HOME": str(cwd), "OPENRY_HOME": str(cwd / "home")}
    done = subprocess.run(argv, cwd=cwd, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{argv}: {done.stdout}{done.stderr}"
    return done.stdout
