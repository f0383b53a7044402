"""A ledger is made at its first use, and opened as it is later."""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from alembic import command
from alembic.config import Config
from sqlalchemy import create_engine, text

from openry.errors import LedgerTooNewError, OpenRYError, StorageError, UsageError
from openry.ledger import schema
from openry.ledger.db import Ledger
from openry.ledger.fast import FastLedger
from openry.ledger.migrate import upgrade
from openry.ledger.version import HEAD
from openry.models import RunContext

NOBODY = 65534


@pytest.fixture
def tmp_path(open_place):
    """One test becomes another user, who must come this far."""
    return open_place


def by_fast(path):
    with FastLedger(path) as ledger:
        ledger.begin(RunContext(), "true")


def by_sqlalchemy(path):
    with Ledger(path) as ledger, ledger.write() as db:
        db.execute(schema.events.insert(), {"at": "2026-03-01T09:00:00.000Z"})


both_ways = pytest.mark.parametrize("use", [by_fast, by_sqlalchemy])


def said_of(use, path) -> str:
    """The sentence that opening the ledger at `path` ends with."""
    with pytest.raises(StorageError) as caught:
        use(path)
    sentence = str(caught.value)
    assert "\n" not in sentence
    assert not sentence.endswith(".")
    return sentence


@both_ways
def test_the_first_use_makes_the_ledger(use, tmp_path):
    """A ledger appears where there is none: in WAL mode, and only its owner may read it."""
    use(tmp_path / "openry.db")

    connection = sqlite3.connect(tmp_path / "openry.db")
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    connection.close()
    assert stat.S_IMODE((tmp_path / "openry.db").stat().st_mode) == 0o600


@both_ways
def test_an_empty_file_becomes_a_ledger(use, tmp_path):
    """A file that somebody touched is as good as none."""
    (tmp_path / "openry.db").touch()

    use(tmp_path / "openry.db")


def test_opening_again_changes_nothing(tmp_path):
    """An upgrade of a ledger that is up to date keeps what is in it."""
    by_fast(tmp_path / "openry.db")
    upgrade(tmp_path / "openry.db")

    with Ledger(tmp_path / "openry.db") as ledger, ledger.read() as db:
        assert db.exec_driver_sql("SELECT count(*) FROM commands_log").scalar() == 1


@both_ways
def test_a_newer_ledger_is_refused_and_left_alone(use, tmp_path):
    """A ledger from the future is named with both versions, and not written."""
    path = tmp_path / "openry.db"
    by_fast(path)
    connection = sqlite3.connect(path)
    with connection:
        connection.execute("UPDATE alembic_version SET version_num = '0907'")
    connection.close()

    with pytest.raises(LedgerTooNewError, match=rf"schema 0907.*openry 0\.1\.0.* {HEAD}.*upgrade"):
        use(path)
    connection = sqlite3.connect(path)
    assert connection.execute("SELECT count(*) FROM commands_log").fetchone() == (1,)
    connection.close()


@both_ways
def test_a_missing_folder_is_named(use, tmp_path):
    """The folder is not made: a misspelt OPENRY_DB must not come true."""
    said = said_of(use, tmp_path / "nowhere" / "openry.db")

    assert f"`{tmp_path / 'nowhere'}` for the ledger does not exist; create it" in said
    assert not (tmp_path / "nowhere").exists()


@both_ways
def test_a_folder_is_no_ledger(use, tmp_path):
    """A path that is a folder is said to be one."""
    assert "is a folder, not a ledger" in said_of(use, tmp_path)


@both_ways
def test_a_file_cannot_hold_a_ledger(use, tmp_path):
    """A path through a file is said to be one."""
    (tmp_path / "notes").write_text("x")

    assert "is a file, so the ledger" in said_of(use, tmp_path / "notes" / "openry.db")


@both_ways
def test_another_kind_of_file_is_left_alone(use, tmp_path):
    """A file that is no database is named, and stays as it is."""
    (tmp_path / "notes.txt").write_text("not a database, and long enough to look like one\n" * 99)
    before = (tmp_path / "notes.txt").read_bytes()

    assert "is not a SQLite database; move it away" in said_of(use, tmp_path / "notes.txt")
    assert (tmp_path / "notes.txt").read_bytes() == before


@both_ways
def test_another_program_s_database_is_left_alone(use, tmp_path):
    """A database with tables of its own does not get ours."""
    connection = sqlite3.connect(tmp_path / "shop.db")
    connection.execute("CREATE TABLE customers (name TEXT)")
    connection.close()

    assert "has a table `customers`" in said_of(use, tmp_path / "shop.db")


def _damage(path: Path, how: str) -> None:
    """Make a file that SQLite did not write of one that it did."""
    size = path.stat().st_size
    with open(path, "r+b") as file:
        if how == "header":
            file.write(b"\xff" * 100)
        elif how == "pages":
            file.seek(100)
            file.write(b"\xff" * (size - 100))
        elif how == "cut":
            file.truncate(size // 2 + 100)
        else:
            file.write(os.urandom(size))


def _parts(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


@pytest.mark.parametrize("how", ["header", "pages", "cut", "all"])
@both_ways
def test_a_damaged_ledger_is_set_aside_and_never_deleted(use, how, tmp_path):
    """One sentence says so and where it is, byte for byte; the next call begins a new one."""
    path = tmp_path / "openry.db"
    by_fast(path)
    _damage(path, how)
    before = _parts(tmp_path)

    said = said_of(use, path)

    assert f"`{path}` was damaged and was set aside as `" in said
    assert "nothing was started" in said
    aside = Path(said.split("`")[3])
    assert aside.read_bytes() == before["openry.db"]
    use(path)
    assert [part for part in tmp_path.iterdir() if part.name.startswith(aside.name)] != []
    with Ledger(path) as ledger, ledger.read() as db:
        assert db.exec_driver_sql("SELECT count(*) FROM commands_log").scalar() in (0, 1)


def test_a_ledger_that_is_damaged_while_it_is_open_is_set_aside(tmp_path):
    """Whoever has it open goes on with the new one at the next call."""
    path = tmp_path / "openry.db"
    with FastLedger(path) as ledger:
        ledger.begin(RunContext(), "one")
        ledger._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        _damage(path, "pages")
        ledger._connection.execute("PRAGMA shrink_memory")  # forget the pages it has in memory
        with pytest.raises(StorageError, match="set aside"):
            ledger.begin(RunContext(), "two")
        assert ledger.begin(RunContext(), "three").command_id == 1


def test_of_many_that_find_the_damage_one_sets_it_aside(tmp_path):
    """The others are told so, and nothing sound is ever moved away."""
    path = tmp_path / "openry.db"
    by_fast(path)
    _damage(path, "pages")
    code = (
        "import sys\nfrom openry.ledger.fast import FastLedger\n"
        "from openry.models import RunContext\n"
        "try: FastLedger(sys.argv[1]).begin(RunContext(), 'x')\nexcept Exception as e: print(e)\n"
        "else: print('ran')"
    )
    found = [
        subprocess.Popen([sys.executable, "-c", code, path], stdout=subprocess.PIPE, text=True)
        for _ in range(6)
    ]
    told = [process.communicate()[0] for process in found]

    assert sum("was set aside as" in one for one in told) == 1
    assert all("set aside" in one or one == "ran\n" for one in told), told
    assert len(list(tmp_path.glob("openry.db.damaged-*"))) in (1, 2, 3)
    with Ledger(path) as ledger, ledger.read() as db:
        rows = db.exec_driver_sql("SELECT count(*) FROM commands_log").scalar()
    assert rows == told.count("ran\n")


@pytest.mark.parametrize("part", ["-wal", "-shm"])
@both_ways
def test_rubbish_beside_a_ledger_does_not_spoil_it(use, part, tmp_path):
    """What SQLite keeps beside its file may be anything after a crash; the rows stay."""
    path = tmp_path / "openry.db"
    by_fast(path)
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    (tmp_path / f"openry.db{part}").write_bytes(os.urandom(40_000))

    use(path)

    with Ledger(path) as ledger, ledger.read() as db:
        assert db.exec_driver_sql("SELECT command FROM commands_log").scalars().first() == "true"


@pytest.mark.parametrize("locked", ["folder", "file"])
@both_ways
def test_a_ledger_that_may_not_be_written_is_named(use, locked, tmp_path):
    """Another user's ledger or folder is one sentence, with what to change."""
    path = tmp_path / "home" / "openry.db"
    path.parent.mkdir()
    if locked == "file":
        by_fast(path)
        path.chmod(0o444)
    path.parent.chmod(0o777 if locked == "file" else 0o555)

    said = _as_somebody_else(lambda: said_of(use, path), tmp_path)

    named = path if locked == "file" else path.parent
    assert said == (
        f"`{named}` is not writable; make it so for this user, or set OPENRY_DB to another file"
    )
    path.parent.chmod(0o755)


def _as_somebody_else(say: Callable[[], str], tmp_path: Path) -> str:
    """What `say` returns in a process that may not do everything, as root's may."""
    with pytest.raises(StorageError):
        by_sqlalchemy(tmp_path)  # whatever is imported late is imported now
    if os.geteuid() != 0:
        return say()
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            os.write(writer, say().encode())
        except BaseException as error:
            os.write(writer, repr(error).encode())
        finally:
            os._exit(0)
    os.close(writer)
    os.waitpid(child, 0)
    with open(reader, encoding="utf-8") as pipe:
        return pipe.read()


def test_a_url_of_sqlite_is_a_path(tmp_path):
    """`sqlite:///…` and the bare path are one ledger."""
    by_fast(f"sqlite:///{tmp_path / 'openry.db'}")

    with Ledger(tmp_path / "openry.db") as ledger, ledger.read() as db:
        assert db.exec_driver_sql("SELECT count(*) FROM commands_log").scalar() == 1


def test_the_hand_says_that_it_writes_to_sqlite_only():
    """A server's URL is refused without its password."""
    with pytest.raises(UsageError, match=r"not to `postgresql://\*\*\*@db/openry`"):
        FastLedger("postgresql://me:secret@db/openry")


def test_a_copy_of_the_file_is_a_ledger(tmp_path):
    """What was finished is in the file: a closed ledger may be copied."""
    by_fast(tmp_path / "openry.db")
    shutil.copy(tmp_path / "openry.db", tmp_path / "copy.db")

    by_fast(tmp_path / "copy.db")


def test_the_hand_s_ledger_is_light():
    """Importing and using it loads none of the heavy libraries, once the ledger is there."""
    code = (
        "import sys, openry.ledger.fast; "
        "print([m for m in ('sqlalchemy', 'alembic', 'dataclasses', 'pathlib', 'typing', 'json')"
        " if m in sys.modules])"
    )
    # -I and -S: nothing but what we import ourselves; the path is given by hand.
    root = Path(__file__).parents[3]
    bare = f"import sys; sys.path.insert(0, {str(root)!r}); {code}"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", bare], capture_output=True, text=True)

    assert (done.stdout, done.stderr) == ("[]\n", "")


def test_every_error_has_a_code():
    """Callers match on codes, not on sentences."""
    assert issubclass(LedgerTooNewError, OpenRYError)
    assert (StorageError.code, LedgerTooNewError.code) == ("storage", "ledger_too_new")


def test_an_older_ledger_is_brought_up_to_date_with_its_rows(tmp_path):
    """A ledger of the first schema gets what is new when it is opened, and loses nothing."""
    path = tmp_path / "openry.db"
    config = Config()
    config.set_main_option("script_location", "openry.ledger:migrations")
    engine = create_engine(f"sqlite:///{path}")
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "0001")
        values = "('one', 'w', '{}', '', '2026-01-01T00:00:00.000Z')"
        columns = "(instance_id, workflow, plan, plan_hash, created_at)"
        connection.execute(text(f"INSERT INTO workflow_instances {columns} VALUES {values}"))
    engine.dispose()

    with Ledger(path) as ledger, ledger.read() as connection:
        assert connection.execute(text("SELECT version_num FROM alembic_version")).scalar() == HEAD
        assert connection.execute(text("SELECT instance_id FROM workflow_instances")).all() == [
            ("one",)
        ]
        assert connection.execute(text("SELECT count(*) FROM schedules")).scalar() == 0
