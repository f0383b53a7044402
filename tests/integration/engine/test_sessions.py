"""A session is suspended, moved, resumed, ended; what moves is checked."""

from __future__ import annotations

import io
import json
import os
import sqlite3
import subprocess
import sys
import tarfile
import time
import traceback
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
import zstandard

from openry import cli
from openry.config import load_config
from openry.errors import OpenRYError, UsageError
from openry.ledger.db import Ledger
from openry.ledger.verify import verify
from openry.orchestrator.engine import Engine
from openry.session import archive as archives
from openry.session import lifecycle
from openry.session.archive import export_session, import_session
from openry.session.snapshot import SnapshotStore

NOBODY = 65534
WORKFLOW = """
name: journey
max_retries: 1
sub_steps:
  - id: one
    kind: shell
    snapshot: both
    command: 'echo 1 >> log; echo {\\"n\\":1}'
    payload_keys: [n]
  - {id: two, kind: shell, command: 'echo 2 >> log', inherit_payload: true}
  - {id: three, kind: shell, command: 'echo ${payload.n}3 >> log', inherit_payload: true}
"""
TOLD = 'timeout 3000 sh -c "until [ -e ../told ]; do sleep 0.02; done"; '


def half_way(bench) -> str:
    """The id of an instance that was suspended as its first step ended.

    The engine may have taken the second by then, which waits until it is suspended.
    """
    instance_id = bench.submit(WORKFLOW.replace("echo 2", f"{TOLD}echo 2"))
    assert suspend_at(bench, instance_id, "one", "done") == "suspended"
    return instance_id


def at_rest(bench, instance_id: str) -> str:
    """The state of the second step once nobody is at it."""
    while (state := bench.engine.outcome(instance_id).step("two").state) == "in_progress":
        time.sleep(0.02)
    return state


def suspend_at(bench, instance_id: str, step_id: str, state: str) -> str:
    """The instance's state when the engine has stopped, suspended at that event or later."""

    def listen(event) -> None:
        if (event.step_id, event.new) == (step_id, state):
            lifecycle.suspend(bench.engine.ledger, instance_id, by="me")
            (bench.workspace.parent / "told").touch()

    return bench.engine.run(instance_id, on_event=listen).state


def other(config, tmp_path):
    home = tmp_path / "elsewhere" / "home"
    home.mkdir(parents=True)
    return replace(load_config(home, env={}), sandbox="none")


def test_a_suspended_session_begins_nothing_and_goes_on(bench):
    """The step under way ends; the next waits for resume; then all is as if uninterrupted."""
    instance_id = half_way(bench)
    assert at_rest(bench, instance_id) in ("done", "queued")
    assert "3" not in bench.read("log")
    assert bench.engine.run(instance_id).state == "suspended"

    lifecycle.resume(bench.engine.ledger, instance_id)

    assert bench.engine.run(instance_id).state == "completed"
    assert bench.read("log") == "1\n2\n13\n"


def test_a_session_suspended_in_its_last_step_ends_with_it(bench):
    """There is nothing left to wait for."""
    instance_id = bench.submit(
        f"name: single\nsub_steps: [{{id: only, kind: shell, command: '{TOLD}echo 1 >> log'}}]"
    )
    assert suspend_at(bench, instance_id, "only", "in_progress") in ("suspended", "completed")

    while (outcome := bench.engine.outcome(instance_id)).state == "suspended":
        time.sleep(0.02)
    assert outcome.state == "completed"
    assert bench.read("log") == "1\n"


def test_what_was_exported_goes_on_in_another_home_under_another_user(bench, open_place):
    """The same files and payload as uninterrupted; here it does not go on by itself."""
    instance_id = half_way(bench)
    at_rest(bench, instance_id)
    archive = open_place / "s.openry"
    export_session(bench.engine.config, bench.engine.ledger, instance_id, archive)
    with pytest.raises(UsageError, match="may go on elsewhere"):
        lifecycle.resume(bench.engine.ledger, instance_id)

    config = other(bench.engine.config, open_place)
    Ledger(config.ledger).close()  # where Python is in root's home, nobody can load more of it
    said = as_somebody_else(open_place, lambda: go_on(config, archive, instance_id))

    assert said == {"state": "completed", "n": 1, "log": "1\n2\n13\n", "verified": True}


def go_on(config, archive, instance_id) -> dict:
    with Ledger(config.ledger) as ledger:
        moved = import_session(config, ledger, archive)
        assert moved.state == "suspended"
        lifecycle.resume(ledger, moved.session_id)
    with Engine(config) as engine:
        outcome = engine.run(instance_id)
        with engine.ledger.read() as connection:
            verified = verify(connection)
    log = Path(moved.workspace, "log").read_text()
    found = {"state": outcome.state, "n": outcome.payload.get("n"), "log": log}
    return {**found, "verified": verified.ok or [str(one) for one in verified.problems]}


def as_somebody_else(folder: Path, act) -> dict:
    """What `act` returns in a process that is nobody's, where this one may do so."""
    if os.geteuid() == 0:
        for place in [*folder.parents][:3]:
            place.chmod(place.stat().st_mode | 0o055)
        for place in [
            folder / "elsewhere",
            *(folder / "elsewhere").rglob("*"),
            folder / "s.openry",
        ]:
            os.chown(place, NOBODY, NOBODY)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            if os.geteuid() == 0:
                os.setgid(NOBODY)
                os.setuid(NOBODY)
            os.chdir("/")
            said = act()
        except BaseException as error:
            said = {"error": "".join(traceback.format_exception(error))[-1500:]}
        os.write(writer, json.dumps(said).encode())
        os._exit(0)
    os.close(writer)
    with open(reader, encoding="utf-8") as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    return json.loads(text)


def test_a_session_that_is_here_is_not_imported_again(bench, tmp_path):
    """Nor into a folder that holds something; nothing is changed by the refusal."""
    outcome = bench.run(WORKFLOW)
    archive = tmp_path / "s.openry"
    config, ledger = bench.engine.config, bench.engine.ledger
    moved = export_session(config, ledger, outcome.instance_id, archive)
    assert moved.state == "ended"
    with pytest.raises(UsageError, match="exists; choose another name"):
        export_session(config, ledger, outcome.instance_id, archive)
    with pytest.raises(UsageError, match="is here already"):
        import_session(config, ledger, archive)
    there = other(config, tmp_path)
    with Ledger(there.ledger) as target:
        with pytest.raises(UsageError, match="is not empty"):
            import_session(there, target, archive, bench.workspace)
        done = import_session(there, target, archive, tmp_path / "new")
        assert (tmp_path / "new" / "log").read_text() == "1\n2\n13\n"
        assert (done.state, done.rows) == ("ended", moved.rows)
        with target.read() as connection:
            assert verify(connection).ok
    lone = {path.name for path in SnapshotStore(there.home / "snapshots").root.glob("new/*")}
    assert lone == set()


def remade(archive: Path, change) -> Path:
    """The archive with its members changed: a dict of names and bytes goes through `change`."""
    data = zstandard.ZstdDecompressor().stream_reader(archive.open("rb")).read()
    with tarfile.open(fileobj=io.BytesIO(data)) as old:
        members = {one.name: old.extractfile(one).read() for one in old}
    members = change(members)
    target, packed = archive.with_name("changed.openry"), io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as new:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            new.addfile(member, io.BytesIO(content))
    target.write_bytes(zstandard.ZstdCompressor().compress(packed.getvalue()))
    return target


def about(members: dict, **values) -> dict:
    found = {**json.loads(members["session.json"]), **values}
    return {**members, "session.json": json.dumps(found).encode()}


def with_tree(members: dict, path: str) -> dict:
    """A snapshot whose id is right, and which has a path that leads elsewhere."""
    from hashlib import blake2b

    entries = [["", "d", 0o755, 0, 0, ""], ["l", "l", 0o777, 0, 0, "/tmp"]]
    entries.append([path, "d", 0o755, 0, 0, ""])
    listing = json.dumps(entries).encode()
    name = blake2b(listing, digest_size=16).hexdigest()
    snapshots = [*json.loads(members["session.json"])["snapshots"], name]
    return {**about(members, snapshots=snapshots), f"trees/{name}": listing}


def with_rows(members: dict, table: str, **values) -> dict:
    """Its rows of one table say something else."""
    rows = [json.loads(line) for line in members["rows.jsonl"].splitlines()]
    found = [[name, {**row, **values} if name == table else row] for name, row in rows]
    return {**members, "rows.jsonl": "".join(json.dumps(row) + "\n" for row in found).encode()}


def with_itself_above(members: dict) -> dict:
    """An instance that was started for itself."""
    whose = json.loads(members["session.json"])["session"]
    return with_rows(members, "workflow_instances", parent_instance_id=whose)


def with_tries_in_a_circle(members: dict) -> dict:
    """Each run is another try of the last one, also the first."""
    rows = [json.loads(line) for line in members["rows.jsonl"].splitlines()]
    runs = [row["run_id"] for name, row in rows if name == "task_state"]
    return with_rows(members, "task_state", previous_run_id=runs[-1])


def with_two_in_a_circle(members: dict) -> dict:
    """Two more instances, each started for the other."""
    rows = [json.loads(line) for line in members["rows.jsonl"].splitlines()]
    about_ = json.loads(members["session.json"])
    first = next(row for name, row in rows if name == "workflow_instances")
    for one, above in (("one", "other"), ("other", "one")):
        rows.insert(
            0, ["workflow_instances", {**first, "instance_id": one, "parent_instance_id": above}]
        )
        about_["workspaces"][one] = about_["workspaces"][about_["session"]]
    about_ |= {"instances": [*about_["instances"], "one", "other"], "rows": len(rows)}
    text = "".join(json.dumps(row) + "\n" for row in rows).encode()
    return {**members, "session.json": json.dumps(about_).encode(), "rows.jsonl": text}


BAD = {
    "itself above": (with_itself_above, "rows that no ledger has: its instances are not those"),
    "a circle": (with_two_in_a_circle, "does not lead to where its session began"),
    "tries in a circle": (with_tries_in_a_circle, "does not lead to where its session began"),
    "newer": (lambda m: about(m, format=99, openry="9.9"), r"openry 9\.9 \(format 99\).*upgrade"),
    "a path out": (lambda m: {**m, "../../etc/passwd": b"x"}, "which no session has"),
    "a tree out": (lambda m: with_tree(m, "../out"), "leads out of its folder"),
    "a tree by a link": (lambda m: with_tree(m, "l/passwd"), "leads out of its folder"),
    "an absolute tree": (lambda m: with_tree(m, "/etc"), "leads out of its folder"),
    "a workspace of no snapshot": (
        lambda m: about(m, snapshots=[]), "files of a workspace that it does not hold",
    ),
    "an id out": (lambda m: about(m, session="../x", instances=["../x"]), "that are none"),
    "a changed content": (
        lambda m: {n: b"evil" if n.startswith("contents/") else d for n, d in m.items()},
        "is not what its name says",
    ),
    "a missing content": (
        lambda m: {n: d for n, d in m.items() if not n.startswith("contents/")},
        "are missing",
    ),
    "a missing row": (
        lambda m: {**m, "rows.jsonl": m["rows.jsonl"].split(b"\n", 1)[1]},
        "was cut short",
    ),
    "another's row": (
        lambda m: {
            **m, "rows.jsonl": m["rows.jsonl"].replace(b'nce_id": "', b'nce_id": "z', 1),
        },
        "rows that no ledger has",
    ),
    "no json": (lambda m: {**m, "session.json": b"{"}, "no session of OpenRY"),
    "nothing": (lambda m: {}, "no session of OpenRY"),
}  # fmt: skip


_SAMPLE = (
    "newer",
    "a circle",
    "tries in a circle",
    "a path out",
    "a tree by a link",
    "a changed content",
)


@pytest.mark.parametrize(
    "name",
    [pytest.param(one, marks=() if one in _SAMPLE else pytest.mark.long) for one in BAD],
)
def test_a_bad_archive_changes_nothing(bench, tmp_path, name):
    """Whatever is wrong with it is one sentence; no row, no snapshot, no file outside."""
    change, sentence = BAD[name]
    outcome = bench.run(WORKFLOW)
    archive = tmp_path / "s.openry"
    export_session(bench.engine.config, bench.engine.ledger, outcome.instance_id, archive)
    there = other(bench.engine.config, tmp_path)
    bad = remade(archive, change)
    mine = tmp_path / "mine"
    mine.mkdir()
    with Ledger(there.ledger) as target:
        with pytest.raises(OpenRYError, match=sentence):
            import_session(there, target, bad, mine)
        with target.read() as connection:
            assert lifecycle.list_sessions(connection) == []
    assert list(mine.iterdir()) == []


def test_a_ledger_that_goes_round_is_not_followed_for_ever(bench):
    """Whoever edits it by hand gets an answer, not a hang."""
    ids = [bench.run(WORKFLOW).instance_id for _ in range(2)]
    with bench.engine.room.write() as connection:
        for one, above in (ids, ids[::-1]):
            query = "UPDATE workflow_instances SET parent_instance_id = ? WHERE instance_id = ?"
            connection.exec_driver_sql(query, (above, one))
        assert lifecycle.root_of(connection, ids[0]).instance_id in ids
        assert len(lifecycle.show_session(connection, ids[0]).instances) == 2


def test_others_write_while_a_session_is_packed(bench, tmp_path, monkeypatch):
    """A large workspace takes its time; the ledger is free meanwhile."""
    outcome = bench.run(WORKFLOW)
    ledger, real, wrote = bench.engine.ledger, archives._write, []

    def write(*about) -> None:
        with closing(sqlite3.connect(ledger.path, timeout=0)) as another:
            another.execute("BEGIN IMMEDIATE")
            another.execute("ROLLBACK")
        wrote.append(real(*about))

    monkeypatch.setattr(archives, "_write", write)
    export_session(bench.engine.config, ledger, outcome.instance_id, tmp_path / "s.openry")

    assert wrote == [None]


_LONG = pytest.mark.long


@pytest.mark.parametrize(
    "part", [pytest.param(0.0, marks=_LONG), pytest.param(0.3, marks=_LONG), 0.7, 0.99]
)
def test_an_archive_that_was_cut_short_is_refused(bench, tmp_path, part):
    """However much of it is left."""
    outcome = bench.run(WORKFLOW)
    archive = tmp_path / "s.openry"
    export_session(bench.engine.config, bench.engine.ledger, outcome.instance_id, archive)
    data = archive.read_bytes()
    archive.write_bytes(data[: int(len(data) * part)])
    there = other(bench.engine.config, tmp_path)
    with Ledger(there.ledger) as target, pytest.raises(OpenRYError):
        import_session(there, target, archive)


def test_the_forms_say_how_a_session_stands(bench, monkeypatch, capfd):
    """list, show, end; what cannot be done is one sentence."""
    instance_id = half_way(bench)
    monkeypatch.setenv("OPENRY_HOME", bench.engine.config.home_dir)
    for name in ("OPENRY_DB", "OPENRY_RUN_ID"):
        monkeypatch.delenv(name, raising=False)
    capfd.readouterr()

    def said(*words: str) -> tuple[int, str, str]:
        return (cli.main(["session", *words]), *capfd.readouterr())

    found = json.loads(said("list", "--json")[1])
    assert [(one["session_id"], one["state"]) for one in found] == [(instance_id, "suspended")]
    shown = json.loads(said("show", instance_id[:6], "--json")[1])
    assert (shown["reason"], shown["instances"]) == ("suspended by me", [instance_id])
    assert said("suspend", instance_id)[2].endswith("only a running one can be suspended\n")
    assert said("end", instance_id)[0] == 0
    bench.engine.run(instance_id)
    assert json.loads(said("list", "--state", "aborted", "--json")[1])
    status, _, err = said("end", instance_id)
    assert (status, err) == (2, f"openry: session {instance_id} is aborted already\n")
    assert said("resume", instance_id)[0] == 2
    assert said("show", "nothing")[0] == 2


@pytest.mark.skipif(sys.platform != "linux", reason="strays are found in /proc")
def test_the_sweeper_ends_what_is_left_of_an_ended_session(bench):
    """A process that outlived its session is ended; one of a session at work is not."""
    outcome = bench.run(WORKFLOW)
    env = {**os.environ, "OPENRY_IDEMPOTENCY_KEY": f"{outcome.instance_id}-1-0-one"}
    stray = subprocess.Popen(["sleep", "100"], env=env)
    other = subprocess.Popen(["sleep", "100"], env={**env, "OPENRY_IDEMPOTENCY_KEY": "other-1-0-x"})

    assert lifecycle.sweep(bench.engine.config, bench.engine.ledger) == 1

    assert stray.wait(10) != 0
    assert other.poll() is None
    other.kill()
    other.wait()
