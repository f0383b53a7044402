"""Archives: what goes in comes out, and nothing an archive says leads out of its folder."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from openry.capability import complete, load_registry
from openry.capability.builtin import archives
from openry.capability.builtin.failure import ToolFailure
from openry.capability.builtin.runner import load

REGISTRY = load_registry()
ENDINGS = [".zip", ".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz"]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workspace, as the child process has it."""
    (tmp_path / "ws").mkdir()
    monkeypatch.chdir(tmp_path / "ws")
    return tmp_path / "ws"


def run(name: str, **arguments) -> bytes:
    tool = REGISTRY.get(name)
    result = load(tool.python or "")(**complete(tool, arguments))
    return result if isinstance(result, bytes) else b"".join(result)


def tree(folder: Path) -> dict[str, bytes | None]:
    """Files with their content, folders with None."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() if path.is_file() else None
        for path in sorted(folder.rglob("*"))
    }


NAMES = st.text(st.characters(codec="utf-8", exclude_characters="/\0\n\r\\", categories=["L", "N"]),
                min_size=1, max_size=8)  # fmt: skip
FILES = st.dictionaries(
    st.lists(NAMES, min_size=1, max_size=3).map("/".join), st.binary(max_size=300), min_size=1
)


@pytest.mark.parametrize("ending", ENDINGS)
def test_what_goes_in_comes_out(ending: str, here: Path):
    """Any names and bytes, and the system's own programs read the same from it."""
    folders = iter(range(10_000))

    @settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
    @given(FILES)
    def holds(files: dict[str, bytes]) -> None:
        number = next(folders)
        source, target = here / f"in{number}" / "d", here / f"out{number}"
        for name, content in files.items():
            place = source / name
            if any(parent.is_file() for parent in place.parents) or place.is_dir():
                continue
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content)
        archive = f"a{number}{ending}"
        os.chdir(source.parent)
        run("create_archive", paths=["d"], output=archive)
        run("extract_archive", path=archive, output=str(target))
        listed = run("list_archive", path=archive).decode().splitlines()
        made = tree(source)

        assert tree(target / "d") == made
        assert sorted(listed) == sorted(f"d/{n}" for n, c in made.items() if c is not None)
        peer = here / f"peer{number}"
        peer.mkdir()
        _unpack_by_program(source.parent / archive, peer)
        assert tree(peer / "d") == made

    holds()


def _unpack_by_program(archive: Path, folder: Path) -> None:
    if archive.suffix == ".zip":
        program = [sys.executable, "-m", "zipfile", "-e", str(archive), str(folder)]
    else:
        program = ["tar", "-xf", str(archive), "-C", str(folder)]
    subprocess.run(program, check=True, capture_output=True)


# --- hostile archives ---------------------------------------------------------------------


def tar_with(*members: tuple[str, dict], mode: str = "w") -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode) as archive:
        for name, about in members:
            info = tarfile.TarInfo(name)
            content = about.pop("content", b"")
            info.size = len(content)
            for key, value in about.items():
                setattr(info, key, value)
            archive.addfile(info, io.BytesIO(content))
    return out.getvalue()


def zip_with(*names: str, content: bytes = b"x") -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name in names:
            archive.writestr(name, content)
    return out.getvalue()


LINK = {"type": tarfile.SYMTYPE}


@pytest.mark.parametrize(
    "name",
    [
        "../evil",
        "a/../../evil",
        "/tmp/evil-openry",
        "a/b/../../../evil",
        "..\\evil",
        "C:\\evil",
        "..",
    ],
)
@pytest.mark.parametrize("kind", ["zip", "tar"])
def test_a_name_that_leads_out_is_refused_whole(here: Path, name: str, kind: str):
    """Nothing is unpacked, not even what came before it."""
    content = zip_with("good", name) if kind == "zip" else tar_with(("good", {}), (name, {}))
    Path("a").write_bytes(content)

    with pytest.raises(ToolFailure, match="leads out of the folder") as refusal:
        run("extract_archive", path="a", output="out")

    assert refusal.value.error_class == "refused"
    assert [path.name for path in here.iterdir()] == ["a"]
    assert not (here.parent / "evil").exists()


def test_nothing_is_written_through_a_link_of_the_archive(here: Path):
    """A link out is left out; what comes after it under its name stays inside."""
    members = [
        ("door", {**LINK, "linkname": "../.."}),
        ("door/evil", {"content": b"x"}),
        ("abs", {**LINK, "linkname": "/etc/passwd"}),
        ("up/inner", {**LINK, "linkname": "../good"}),
        ("good", {"content": b"good"}),
        ("twin", {"type": tarfile.LNKTYPE, "linkname": "/etc/passwd"}),
        ("pipe", {"type": tarfile.FIFOTYPE}),
        ("disk", {"type": tarfile.BLKTYPE}),
    ]
    Path("a.tar").write_bytes(tar_with(*members))

    run("extract_archive", path="a.tar", output="out")

    found = sorted(p.relative_to(here).as_posix() for p in (here / "out").rglob("*"))
    assert found == ["out/door", "out/door/evil", "out/good", "out/up", "out/up/inner"]
    assert (here / "out/up/inner").read_bytes() == b"good"
    assert not (here.parent / "evil").exists()


def test_a_link_and_files_behind_it_are_refused(here: Path):
    """A link inside, then a file through it: what was meant cannot be told, nothing is kept."""
    members = [
        ("d", {**LINK, "linkname": "e"}),
        ("d/f", {"content": b"x"}),
        ("e/g", {"content": b"y"}),
    ]
    Path("a.tar").write_bytes(tar_with(*members))

    with pytest.raises(ToolFailure, match="twice"):
        run("extract_archive", path="a.tar", output="out")
    assert not (here / "out").exists()


def test_a_link_that_lies_in_the_way_is_not_gone_through(here: Path):
    """The folder to unpack into may hold somebody's link out."""
    (here / "out").mkdir()
    (here / "out/d").symlink_to(here.parent)
    Path("a.tar").write_bytes(tar_with(("d/evil", {"content": b"x"})))

    with pytest.raises(ToolFailure, match="is a link"):
        run("extract_archive", path="a.tar", output="out", overwrite=True)

    assert not (here.parent / "evil").exists()


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
def test_a_bomb_is_cut_short(here: Path, pack):
    """32 MB of nothing, packed small: refused at the limit, with nothing left behind."""
    Path("a.tar").write_bytes(pack(tar_with(("zeros", {"content": bytes(32 << 20)}))))

    with pytest.raises(ToolFailure, match="larger than 1 MB") as refusal:
        run("extract_archive", path="a.tar", output="out", max_mb=1)

    assert refusal.value.error_class == "resource"
    assert [path.name for path in here.iterdir()] == ["a.tar"]


def test_a_zip_that_lies_about_its_sizes_is_counted(here: Path):
    """The header says one byte; what comes out is counted, or found to be broken."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("zeros", bytes(8 << 20))
    true = (8 << 20).to_bytes(4, "little")
    Path("a.zip").write_bytes(out.getvalue().replace(true, (1).to_bytes(4, "little")))

    with pytest.raises(ToolFailure):
        run("extract_archive", path="a.zip", output="out", max_mb=1)
    assert not (here / "out").exists()


def test_too_many_entries_are_too_many(here: Path, monkeypatch):
    """A list of names is bounded too."""
    monkeypatch.setattr(archives, "_MOST_ENTRIES", 5)
    Path("a.zip").write_bytes(zip_with(*map(str, range(9))))

    for name, more in (("list_archive", {}), ("extract_archive", {"output": "out"})):
        with pytest.raises(ToolFailure, match="more than 5 entries"):
            run(name, path="a.zip", **more)


@pytest.mark.parametrize("cut", [0, 1, 30, 100, -30, -1])
@pytest.mark.parametrize("ending", ENDINGS)
def test_half_an_archive_is_said_to_be_one(here: Path, ending: str, cut: int):
    """One sentence with its class, whatever is missing; nothing stays behind."""
    Path("f").write_bytes(os.urandom(500))
    run("create_archive", paths=["f"], output=f"a{ending}")
    whole = Path(f"a{ending}").read_bytes()
    Path("b").write_bytes(whole[: cut if cut >= 0 else len(whole) + cut])

    try:
        run("extract_archive", path="b", output="out")
    except ToolFailure as failure:
        assert failure.error_class in ("bad_arguments", "not_found")
        assert not (here / "out").exists()
    else:
        assert (here / "out/f").read_bytes() == Path("f").read_bytes()
    assert not list(here.glob(".*"))


def test_an_encrypted_zip_says_so(here: Path):
    """The flag in the header is enough to be asked for a password."""
    content = bytearray(zip_with("f"))
    content[6] |= 1
    content[content.rindex(b"PK\x01\x02") + 8] |= 1
    Path("a.zip").write_bytes(bytes(content))

    with pytest.raises(ToolFailure, match="encrypted") as refusal:
        run("extract_archive", path="a.zip", output="out")
    assert refusal.value.error_class == "auth"


def test_what_is_there_stays_unless_told_otherwise(here: Path):
    """A conflict changes nothing; `overwrite` replaces files and keeps the others."""
    Path("a.zip").write_bytes(zip_with("f", "g"))
    (here / "out").mkdir()
    (here / "out/g").write_text("mine")
    (here / "out/h").write_text("mine")

    with pytest.raises(ToolFailure, match="exists"):
        run("extract_archive", path="a.zip", output="out")
    assert tree(here / "out") == {"g": b"mine", "h": b"mine"}
    run("extract_archive", path="a.zip", output="out", overwrite=True)
    assert tree(here / "out") == {"f": b"x", "g": b"x", "h": b"mine"}


def test_links_in_a_folder_are_not_followed(here: Path):
    """A tar keeps a link as a link, a zip leaves it out: what lies outside is never packed."""
    (here.parent / "secret").write_text("secret")
    (here / "d").mkdir()
    (here / "d/f").write_text("f")
    (here / "d/link").symlink_to(here.parent / "secret")

    run("create_archive", paths=["d"], output="a.tar")
    run("create_archive", paths=["d"], output="a.zip")

    assert b"secret\0" not in Path("a.tar").read_bytes().replace(b"/secret\0", b"")
    assert run("list_archive", path="a.zip") == b"d/f\n"
