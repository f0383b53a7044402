"""Many small contents in one file: as safe as each in its own."""

from __future__ import annotations

import errno
import os

import pytest

from openry.errors import SnapshotError
from openry.session import contents
from openry.session.snapshot import SnapshotStore


@pytest.fixture(autouse=True)
def all_in_packs(monkeypatch):
    monkeypatch.setattr(contents, "_ALONE", 0)


@pytest.fixture
def workspace(tmp_path):
    """Three hundred files, no two of them alike, some worth compressing."""
    folder = tmp_path / "ws"
    folder.mkdir()
    for number in range(300):
        (folder / f"{number}").write_text(f"{number} " * (number * 10))
    return folder


@pytest.fixture
def store(tmp_path):
    return SnapshotStore(tmp_path / "store")


def packs(store: SnapshotStore) -> list[os.PathLike[str]]:
    return sorted((store.root / "packs").iterdir())


def texts(folder) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.iterdir()}


def test_many_contents_are_one_file(store, workspace, tmp_path):
    """They come back as they were, from a store that is opened anew."""
    made = store.create(workspace)
    SnapshotStore(store.root).restore(made.id, tmp_path / "copy")

    assert texts(tmp_path / "copy") == texts(workspace)
    assert len(packs(store)) == 1
    assert not list((store.root / "objects").iterdir())
    assert len(store.sizes()) == 300


def test_what_a_pack_has_is_not_kept_again(store, workspace, tmp_path):
    """The same contents elsewhere make no second pack, whoever records them."""
    made = store.create(workspace)
    other = tmp_path / "other"
    store.restore(made.id, other)
    before = packs(store)

    assert SnapshotStore(store.root).create(other).id == made.id
    assert packs(store) == before


def test_a_full_pack_is_followed_by_another(store, workspace, tmp_path, monkeypatch):
    """Packs stay small enough to be tidied up."""
    monkeypatch.setattr("openry.session.packs._MOST_BYTES", 10_000)
    made = store.create(workspace)
    store.restore(made.id, tmp_path / "copy")

    assert len(packs(store)) > 1
    assert texts(tmp_path / "copy") == texts(workspace)


def test_tidying_up_leaves_what_is_wanted(store, workspace, tmp_path):
    """A pack is written anew without what nothing leads to; that room is free again."""
    gone = store.create(workspace)
    for number in range(10, 300):
        (workspace / f"{number}").unlink()
    stays = store.create(workspace)
    reader = SnapshotStore(store.root)
    assert reader.read(stays.id, "7")
    before = sum(path.stat().st_size for path in packs(store))

    told = store.collect([stays.id], young_s=-1, dry_run=True)
    freed = store.collect([stays.id], young_s=-1)

    assert freed == told
    assert (freed.snapshots, freed.objects) == (1, 290)
    after = sum(path.stat().st_size for path in packs(store))
    assert before - after >= freed.bytes > 0
    assert reader.read(stays.id, "7") == (workspace / "7").read_bytes(), "it stands elsewhere now"
    store.restore(stays.id, tmp_path / "copy")
    assert texts(tmp_path / "copy") == texts(workspace)
    assert gone.id not in store.ids()
    store.collect([], young_s=-1)
    assert packs(store) == []


def test_what_cannot_be_tidied_up_stays(store, workspace, monkeypatch):
    """On a full disk a pack that would have to be written anew is left as it is."""
    store.create(workspace)
    for number in range(10, 300):
        (workspace / f"{number}").unlink()
    stays = store.create(workspace)
    before = packs(store)
    monkeypatch.setattr(os, "write", full)
    freed = store.collect([stays.id], young_s=-1)
    monkeypatch.undo()

    assert (freed.snapshots, freed.objects, freed.bytes) == (1, 0, 0)
    assert packs(store) == before
    assert not any((store.root / "new").iterdir())
    assert store.read(stays.id, "7") == (workspace / "7").read_bytes()


def full(*_: object) -> int:
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("harm", ["cut short", "changed", "missing", "empty"])
def test_a_damaged_pack_is_found_out(store, workspace, tmp_path, harm):
    """A restore from it changes nothing; where it is gone, the next snapshot keeps all anew."""
    made = store.create(workspace)
    (pack,) = packs(store)
    whole = pack.read_bytes()
    if harm == "missing":
        pack.unlink()
    else:
        harmed = {"cut short": whole[:-20], "changed": b"\xff" * 999 + whole[999:], "empty": b""}
        pack.write_bytes(harmed[harm])
    fresh = SnapshotStore(store.root)

    with pytest.raises(SnapshotError, match="the snapshot is damaged"):
        fresh.restore(made.id, tmp_path / "copy")
    assert not (tmp_path / "copy").exists()
    if harm != "changed":
        for path in (store.root / "index").iterdir():
            path.unlink()
        assert fresh.create(workspace).id == made.id
        fresh.restore(made.id, tmp_path / "copy")
        assert texts(tmp_path / "copy") == texts(workspace)


def test_a_pack_of_another_store_s_making_is_found(store, workspace):
    """Who has looked at the packs before looks again before saying that something is missing."""
    reader = SnapshotStore(store.root)
    reader.create(workspace)
    (workspace / "new").write_text("one more")
    made = store.create(workspace)

    assert reader.read(made.id, "new") == b"one more"
