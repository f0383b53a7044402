"""Whatever order the touches of actions allow, what they do is what they do one by one."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

from hypothesis import event, given, note, settings
from hypothesis import strategies as st

from openry.agent.touches import of_line, waits

NAMES = st.sampled_from(["a", "b", "c", "d/a", "d/b", "e", "e/a", "f/g/a"])
FOLDERS = st.sampled_from(["d", "e", "f", "f/g", "."])
#: What a folder copied into itself comes to hangs on how the file system lists it.
COPIES = st.tuples(FOLDERS, NAMES).filter(
    lambda names: names[0] != "." and not f"{names[1]}/".startswith(f"{names[0]}/")
)
LINES = st.one_of(
    st.builds("sort {} > {}".format, NAMES, NAMES),
    st.builds("cat {} {}".format, NAMES, NAMES),
    st.builds("echo {} >> {}".format, NAMES, NAMES),
    st.builds("mv {} {}".format, NAMES, NAMES),
    COPIES.map("cp -r {0[0]} {0[1]}".format),
    st.builds("cp {} {}".format, NAMES, NAMES),
    st.builds("cp -r [a-c] {}".format, FOLDERS),
    st.builds("mkdir -p {}".format, FOLDERS),
    st.builds("rmdir {}".format, FOLDERS),
    st.builds("rm {}".format, NAMES),
    st.builds("sed -i s/a/bb/ {}".format, NAMES),
    st.builds("tee {} {} < {}".format, NAMES, NAMES, NAMES),
    st.builds("touch {}".format, NAMES),
    st.sampled_from(["ls", "echo *", "ls f"]),
    st.builds("ls -R {}".format, FOLDERS),
    st.builds("test -e {} && echo there".format, NAMES),
    st.builds("cat {}/*".format, FOLDERS),
    st.builds("cd {} && cat a > b".format, FOLDERS),
    st.builds("grep -c a {} > {}".format, NAMES, NAMES),
    st.builds("ln -s {} {}".format, NAMES, NAMES),
    st.builds("ln {} {}".format, NAMES, NAMES),
    st.builds("cat $(cat {})".format, NAMES),
    st.builds("find {} -type f".format, FOLDERS),
)


def plant(root: Path, links: bool) -> None:
    (root / "d").mkdir()
    for name in ("a", "b", "d/a"):
        (root / name).write_text(f"{name}\nlast\n")
    if links:
        (root / "c").symlink_to("a")
        (root / "d/b").hardlink_to(root / "b")


def run(text: str, root: Path) -> tuple[int, bytes]:
    done = subprocess.run(["bash", "-c", text], cwd=root, capture_output=True, check=False)
    return done.returncode, done.stdout


def tree(root: Path) -> dict[str, bytes | str]:
    found: dict[str, bytes | str] = {}
    for path in sorted(root.rglob("*")):
        name = str(path.relative_to(root))
        if path.is_symlink():
            found[name] = f"link to {path.readlink()}"
        else:
            found[name] = path.read_bytes() if path.is_file() else "folder"
    return found


@settings(max_examples=120)
@given(st.lists(LINES, min_size=2, max_size=5), st.booleans(), st.data())
def test_any_order_that_is_allowed_comes_to_the_same(lines, links, data):
    """The files and every answer, for folders that are made, moved and removed, and for links."""
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        serial, mixed = Path(one), Path(other)
        for root in (serial, mixed):
            plant(root, links)
        before = waits([of_line(text, mixed) for text in lines])
        wanted = {place: run(text, serial) for place, text in enumerate(lines)}

        found: dict[int, tuple[int, bytes]] = {}
        while len(found) < len(lines):
            ready = [n for n in range(len(lines)) if n not in found and before[n] <= set(found)]
            event(f"{len(ready)} may be next")
            place = data.draw(st.sampled_from(ready[::-1]))
            found[place] = run(lines[place], mixed)

        note(f"{lines} in the order {list(found)}, waits {before}")
        assert found == wanted
        assert tree(mixed) == tree(serial)
