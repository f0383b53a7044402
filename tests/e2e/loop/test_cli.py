"""`openry-loop` as a person and a script meet it."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from loop.cli import app, main
from loop.cli.terminal import stopping
from openry.ledger.db import Ledger

SORT = "Sort names.txt alphabetically and save to sorted.txt"
KEYS = (
    "outcome", "stop", "workflow", "rounds", "edits", "acceptance", "acceptance_strength",
    "weak_because", "tokens", "cost_usd", "seconds", "results", "schema_version",
)  # fmt: skip
EMPTY = "it is empty: leave the option out, or give a value"


def loop(*args: object):
    """One call in this process; (exit status, standard output, standard error)."""
    done = CliRunner().invoke(app, [str(arg) for arg in args])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.exit_code, done.stdout, done.stderr


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*"))


@pytest.mark.sandbox
def test_a_task_from_words_to_results(home, folder, tmp_path):
    """`new` streams events and ends with the outcome; the other commands read what it wrote."""
    status, out, _ = loop("new", SORT, "--dir", folder, "--json")
    lines = [json.loads(line) for line in out.splitlines()]
    last = lines[-1]

    assert status == 0
    assert [line["event"] for line in lines[:-1]].count("draft") == 1
    assert set(KEYS) <= set(last)
    assert next(iter(last)) == "outcome"
    assert (folder / "sorted.txt").read_text() == "al\nbob\ncy\n"
    assert last["results"] == [str(folder / "sorted.txt")]

    session = last["session"]
    assert session in loop("list")[1]
    assert "sort_lines" in loop("show", session)[1]
    assert json.loads(loop("show", session[:11], "--json")[1])["rounds"][0]["round"] == 0
    assert loop("diff", session, 0, 0)[0] == 0
    page = tmp_path / "page.html"
    assert loop("report", session, "--html", page)[0] == 0
    assert "<svg" in page.read_text()
    again, out, _ = loop("resume", session, "--json")
    assert again == 0
    assert json.loads(out.splitlines()[-1])["outcome"] == "converged"


@pytest.mark.sandbox
def test_a_person_sees_plan_draft_and_outcome(home, folder):
    """The text view shows each phase; `--quiet` only the outcome."""
    loud = loop("new", SORT, "--dir", folder, "--yes")[1]
    (folder / "sorted.txt").unlink()
    quiet = loop("new", SORT, "--dir", folder, "--yes", "--quiet")[1]

    soft = "should: sorted.txt is what a second reading gives"
    for word in ("plan", "what must hold", soft, "draft", "capability: sort_lines", "converged"):
        assert word in loud
    assert "converged" in quiet
    (line,) = loop("new", SORT, "--dir", folder, "--yes", "--quiet", "--json")[1].splitlines()
    assert json.loads(line)["outcome"] == "converged"
    assert "capability: sort_lines" not in quiet


@pytest.mark.parametrize(
    ("args", "word"),
    [
        (("new", ""), "empty"),
        (("new", SORT, "--dir", "/no/such"), "--dir"),
        (("new", "Sort absent.txt into o.txt"), "no file `absent.txt` in the folder (it has app."),
        (
            ("new", "Sort absent.txt into o.txt", "--accept", "file_exists path=o.txt"),
            "no file `absent.txt` in the folder",
        ),
        (("new", SORT, "--planner", "foo/bar"), "foo/bar"),
        (("new", SORT, "--planner", "local/foo"), "local/foo"),
        (("new", SORT, "--model", "local/none.gguf"), "none.gguf"),
        (("new", SORT, "--planner", "openai/gpt-4o-mini"), "OPENAI_API_KEY"),
        (("new", SORT, "--accept", "file_exist path=a"), "file_exists"),
        (("new", SORT, "--accept", "no/such.yaml"), "no/such.yaml"),
        (("new", SORT, "--accept", ""), "`file_exists path=out.txt`"),
        (("new", SORT, "--accept", "."), "`.` is a folder"),
        (("new", SORT, "--accept", "file_exists path=/etc/passwd"), "`/etc/passwd` is not in"),
        (("new", SORT, "--accept", "file_exists path=a/../../b"), "`a/../../b` is not in"),
        (("new", SORT, "--from", "no/such.yaml"), "no/such.yaml"),
        (("new", SORT, "--from", "/dev/null"), "/dev/null: cannot be read: it is no regular file"),
        (("new", SORT, "--from", "/dev/zero"), "/dev/zero: cannot be read: it is no regular file"),
        (("new", SORT, "--dir", "/dev/null"), "is not a folder"),
        (("new", SORT, "--budget-usd", "inf"), "--budget-usd"),
        (("bench", "--suite", "/dev/zero"), "/dev/zero: cannot be read: it is no regular file"),
        (("new", SORT, "--budget-tokens", "0"), "--budget-tokens"),
        (("new", SORT, "--name", "a/b"), "a/b"),
        (("show", "nothing"), "list"),
        (("resume", "nothing"), "list"),
        (("diff", "nothing", "0", "1"), "list"),
        (("bench", "--suite", "no/such.jsonl"), "no/such.jsonl"),
        (("bench", "--suite", "no/such.jsonl", "--arm", "magic"), "magic"),
        (("bench", "--recorded", "."), "`--recorded` has no part in a suite of tasks"),
        (("bench", "--suite", ".", "--seeds", "2"), "`--seeds` has no part in"),
        (("bench", "--gates", "--planners"), "`--planners` has no part in `--gates`"),
        (("bench", "--html", "no/such/page.html"), "no/such/page.html"),
        (("bench", "--html", "."), "`.` cannot be written"),
        (("review", "x", "--check", "--html", "p"), "one of `--check` and `--html`"),
        (("review", "x", "--html", "p", "--decisions", "d"), "one of `--html` and `--decisions`"),
        (("resume", "x" * 300), "list"),
        (("templates", "add", "x" * 300), "list"),
        (("bench", "--suite", "x" * 300), "file name too long"),
    ],
)
def test_bad_input_is_one_sentence(home, folder, monkeypatch, args, word):
    """Exit 2, the sentence names what to mend, and the folder is as it was."""
    monkeypatch.chdir(folder)
    before = names(folder)

    status, _, err = loop(*args)

    assert status == 2
    assert word in err
    assert err.startswith("openry-loop: ")
    assert "Traceback" not in err
    assert names(folder) == before


def test_a_folder_that_cannot_be_written_is_said_before_anything_begins(home, folder, capsys):
    """Results are put into it, and copies keep its rights, also for root."""
    folder.chmod(0o555)

    status = main(["new", SORT, "--dir", str(folder), "--yes"])
    folder.chmod(0o755)

    assert status == 2
    assert f"chmod u+rwx {folder}" in capsys.readouterr().err
    assert json.loads(loop("list", "--json")[1])["sessions"] == []


def test_ctrl_c_while_words_are_read_is_said(capsys, monkeypatch):
    """Typer would end with 130 and not a word."""

    def interrupted(*args: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("typer.core.TyperGroup.parse_args", interrupted)

    assert main(["list"]) == 130
    assert capsys.readouterr().err == "openry-loop: interrupted\n"


@pytest.mark.parametrize("name", ["loops", "snapshots", "workflows"])
def test_a_home_that_cannot_be_written_is_said_before_anything_begins(home, folder, capsys, name):
    """Nothing is delivered that could not be kept as well."""
    home.mkdir(mode=0o700, exist_ok=True)
    (home / name).write_text("in the way\n")
    before = names(folder)

    status = main(["new", SORT, "--dir", str(folder), "--yes"])

    assert status == 2
    assert f"`{home / name}` cannot be written" in capsys.readouterr().err
    assert names(folder) == before


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["new"], "missing argument `TASK` (usage: openry-loop new [OPTIONS] TASK)"),
        (["diff", "a"], "missing argument `R1` (usage: openry-loop diff [OPTIONS] ID R1 R2)"),
        (["nwe"], "there is no command `nwe` (did you mean `new`?)"),
        (["new", "x", "--round", "3"], "no such option: `--round` (did you mean `--rounds`?)"),
        *(
            (["new", "x", option, " "], f"invalid value for `{option}`: {EMPTY}")
            for option in ("--planner", "--model", "--name")
        ),
        (["review", "x", "--as", ""], f"invalid value for `--as`: {EMPTY}"),
        (
            ["bench", "--limit", "0"],
            "invalid value for `--limit`: it must be greater than or equal to 1",
        ),
        (["new", "x", "--rounds"], "option `--rounds` requires an argument"),
        (["new", "x", "--rounds", "a"], "invalid value for `--rounds`: it must be a valid integer"),
    ],
)
def test_words_that_cannot_be_taken_are_one_sentence(home, capsys, words, sentence):
    """A missing or unknown word: exit 2 and what to write, without a page of usage."""
    assert main(words) == 2
    assert capsys.readouterr().err == f"openry-loop: {sentence}\n"


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("name: x\nsub_steps:\n  - id: a\n   kind: shell\n", "indentation"),
        ("name: x\nname: y\nsub_steps: [{id: a, kind: shell, command: ls}]\n", "twice"),
        ("name: x\nsub_steps: [{id: a, kind: shell, comand: ls}]\n", "did you mean `command`"),
        ("name: x\nsub_steps: [{id: a, kind: shell, command: ls, on_success: z}]\n", "`z`"),
        ("just words", "mapping"),
        ("big_steps: [{ref: a}]\nname: c\n", "composition"),
    ],
)
def test_a_bad_workflow_to_start_from_is_named_with_its_lines(home, folder, tmp_path, text, word):
    """Every problem of the file, each with its line; nothing runs."""
    source = tmp_path / "w.yaml"
    source.write_text(text)

    status, _, err = loop("new", SORT, "--dir", folder, "--from", source)

    assert status == 2
    assert word in err
    assert "w.yaml" in err


def test_a_script_reads_bad_input_as_json(home, folder):
    """With `--json` the sentence comes as the outcome object."""
    status, out, err = loop("new", "", "--dir", folder, "--json")

    assert status == 2
    assert err == ""
    assert json.loads(out)["outcome"] == "unusable"


def test_a_ledger_of_a_newer_openry_is_refused(home, folder):
    """One sentence, and the ledger is left as it is."""
    Ledger(home / "openry.db").close()
    with sqlite3.connect(home / "openry.db") as db:
        db.execute("UPDATE alembic_version SET version_num = 'zz99'")

    status, _, err = loop("new", SORT, "--dir", folder)

    assert status == 2
    assert "newer" in err


def test_a_ledger_that_cannot_be_written_is_refused(home, folder, monkeypatch):
    """One sentence with the way out, exit 2."""
    monkeypatch.setenv("OPENRY_DB", "/proc/none/openry.db")

    status, _, err = loop("new", SORT, "--dir", folder)

    assert status == 2
    assert "OPENRY_DB" in err


def test_a_chosen_name_that_is_taken_is_refused_before_anything_runs(home, folder):
    """Nothing on the shelf is overwritten."""
    (home / "workflows").mkdir()
    (home / "workflows/mine.yaml").write_text("name: mine\n")

    status, _, err = loop("new", SORT, "--dir", folder, "--name", "mine")

    assert status == 2
    assert "--name" in err
    assert (home / "workflows/mine.yaml").read_text() == "name: mine\n"


def test_an_agent_cannot_start_a_loop(home, folder, monkeypatch):
    """Inside a run there is only `openry`."""
    monkeypatch.setenv("OPENRY_RUN_ID", "r1")

    status, _, err = loop("new", SORT, "--dir", folder)

    assert status == 2
    assert "inside a run" in err


def test_models_are_listed_with_their_origin(home, monkeypatch):
    """Flag, environment, file or default: `models` says which."""
    monkeypatch.setenv("OPENRY_PLANNER_MODEL", "openai/gpt-4o-mini")

    rows = json.loads(loop("models", "--json")[1])["models"]

    assert rows[0]["origin"] == "environment"
    assert rows[0]["model"] == "openai/gpt-4o-mini"
    assert rows[0]["usable"] is False
    assert "OPENAI_API_KEY" in rows[0]["note"]


def started(*args: object) -> subprocess.Popen[str]:
    """One call in a process of its own."""
    child = "from loop.cli import main; import sys; sys.exit(main())"
    return subprocess.Popen(
        [sys.executable, "-c", child, *map(str, args)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=dict(os.environ),
    )  # fmt: skip


def wait_for(process: subprocess.Popen[str], event: str) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        if json.loads(line).get("event") == event:
            return


@pytest.mark.sandbox
def test_ctrl_c_can_be_resumed(home, folder, tmp_path):
    """SIGINT ends with 130 and a way on; the folder is untouched; `resume` ends the work."""
    source = tmp_path / "w.yaml"
    source.write_text(
        "name: slow\nsub_steps:\n"
        "  - {id: wait, kind: shell, command: sleep 8}\n"
        "  - {id: sort, kind: shell, command: sort names.txt > sorted.txt}\n"
    )
    rule = "file_contains path=sorted.txt contains=al"
    process = started(
        "new", SORT, "--dir", folder, "--from", source, "--accept", rule, "--yes", "--json"
    )
    wait_for(process, "step")
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    last = json.loads(out.splitlines()[-1])

    assert process.returncode == 130
    assert last["outcome"] == "interrupted"
    assert "resume" in last["sentence"]
    assert "Traceback" not in err
    assert names(folder) == ["app.log", "names.txt"]
    assert loop("resume", last["session"])[0] == 0
    assert (folder / "sorted.txt").read_text() == "al\nbob\ncy\n"


@pytest.mark.sandbox
@pytest.mark.model
def test_ctrl_c_ends_a_small_models_work(home, folder, tmp_path):
    """While the embedded model thinks: 130, a way on, and no word of a crash."""
    source = tmp_path / "w.yaml"
    source.write_text(
        "name: thinks\nsub_steps:\n"
        "  - {id: a, kind: agent, description: Sort names.txt and tell its story.}\n"
    )
    process = started("new", SORT, "--dir", folder, "--from", source, "--yes", "--json")
    wait_for(process, "step")
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    last = json.loads(out.splitlines()[-1])

    assert process.returncode == 130
    assert last["sentence"] == f"go on with `openry-loop resume {last['session']}`"
    assert err == "openry-loop: stopping (once more to stop at once)\n"


def test_a_wish_to_stop_that_nobody_looks_at_is_heard():
    """Where no run asks whether to stop, the first Ctrl-C is enough after a moment."""
    with pytest.raises(KeyboardInterrupt), stopping():
        signal.raise_signal(signal.SIGINT)
        for _ in range(600):
            time.sleep(0.1)


def test_a_wish_to_stop_that_is_seen_raises_nothing():
    """Who looks ends by itself."""
    with stopping() as should_stop:
        assert not should_stop()
        signal.raise_signal(signal.SIGINT)
        assert should_stop()
        time.sleep(1.2)


@pytest.mark.sandbox
def test_a_suite_is_scored_against_what_the_loop_never_sees(home, tmp_path):
    """Right and wrong are counted by the hidden result, whatever the outcome says."""
    case = {
        "id": "c1",
        "task": SORT,
        "files": {"names.txt": "b\na\n"},
        "accept": [{"type": "file_exists", "path": "sorted.txt"}],
        "expect": {"sorted.txt": "a\nb\n"},
    }
    suite = tmp_path / "suite.jsonl"
    wrong = {**case, "id": "c2", "expect": {"sorted.txt": "something else"}}
    suite.write_text(f"{json.dumps(case)}\n{json.dumps(wrong)}\n")

    status, out, _ = loop("bench", "--suite", suite, "--json")
    (total,) = json.loads(out)["totals"]

    assert status == 0
    assert (total["tasks"], total["right"], total["silent_wrong"]) == (2, 1, 1)


def test_the_help_loads_no_models():
    """What a person types first is there at once: nothing of the loop itself is loaded either."""
    code = "from loop.cli import main; main(['--help']); import sys; print(*sys.modules)"

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    loaded = done.stdout.splitlines()[-1].split()
    assert "loop.cli" in loaded
    assert {"loop.start", "openry.llm", "openry.ledger", "pydantic"}.isdisjoint(loaded)
