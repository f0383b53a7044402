"""Wrong words: one plain sentence with the place and the way out, status 2, and nothing done."""

from __future__ import annotations

import io
import json
import shutil
import sys
from pathlib import Path

import pytest
from hand_helpers import OpenRY

from openry.cli import main
from openry.sandbox import process

PAIR = '{"path": "a.txt", "path": "b.txt"}'
#: Of the hand's forms: words, and what the answer says.
FORMS: list[tuple[list[str], str]] = [
    (["-c", "ls", "--cwd", "a.txt"], "is a file, not a folder; name a folder that exists"),
    (["-c", "ls", "--cwd", "nope"], "does not exist; name a folder that exists with --cwd"),
    (["-c", "ls", "--cwd", ""], "--cwd is empty"),
    (["-c", "ls", "--cwd"], "`--cwd` needs a value"),
    (["-c", ""], "the command is empty"),
    (["-c", " \n"], "the command is empty"),
    (["-c", "ls", "-c", "ls"], "`-c` is given twice"),
    (["-c", "ls", "--call", "x"], "cannot go together"),
    (["-c", "ls", "-l"], "quote the whole command"),
    (["-c", "@nope"], "No such file"),
    (["-c", "@."], "this is a folder"),
    (["-c", "-", "--stdin"], "cannot pass it on"),
    (["-c", "ls", "--timeout", "5s"], "a number of seconds above 0, e.g. 2.5; got `5s`"),
    (["-c", "ls", "--timeout", "1_0"], "got `1_0`"),
    (["-c", "ls", "--timeout", "-1"], "got `-1`"),
    (["-c", "ls", "--timeout", "nan"], "got `nan`"),
    (["-c", "ls", "--env", "A"], "NAME=VALUE"),
    (["-c", "ls", "--env", "1A"], "NAME=VALUE, got `1A`"),
    (["-c", "ls", "--env", "1A=x"], "`1A` cannot be the name of a variable"),
    (["-c", "ls", "--env", "BASH_FUNC_ls%%=() { id; }"], "cannot be the name of a variable"),
    (["-c", "ls", "--env", "É=x"], "cannot be the name of a variable"),
    (["-c", "ls", "--raw=yes"], "takes no value"),
    (["-c", "ls", "--propagat"], "did you mean `--propagate`?"),
    (["-c", "ls", "--payload", "{}"], "does not go with `-c`"),
    (["--bogus"], "unknown option `--bogus`"),
    (["--status", ""], "use one of completed"),
    (["--status", "done"], "use one of completed"),
    (["--status", "completed", "--payload", "{"], "the payload is not JSON"),
    (["--status", "completed", "--payload", "[1]"], "must be a JSON object"),
    (["--status", "completed", "--payload", '{"a": 1, "a": 2}'], "key `a` stands twice"),
    (["--status", "completed", "--payload", '{"a": NaN}'], "what JSON cannot"),
    (["--status", "completed", "--payload", "@nope"], "No such file"),
    (["--call", ""], "no capability is called ``"),
    (["--call", "count_line"], "did you mean `count_lines`?"),
    (["--call", "count_lines"], "missing `path`"),
    (["--call", "count_lines", "--args", PAIR], "key `path` stands twice"),
    (["--call", "count_lines", "--args", "[]"], "must be a JSON object"),
    (["--call", "count_lines", "--args", "[" * 100_000], "nested too deep"),
    (["--call", "count_lines", "--args", '{"path": ["a.txt"]}'], "must be string, got array"),
    (["--call", "count_lines", "--args", '{"pth": "a.txt"}'], "did you mean `path`?"),
    (["--call", "count_lines", "--args", '{"path": "a.txt"}', "--cwd", "nope"], "does not exist"),
    (["--capabilities", "x"], "is no option of `--capabilities`"),
    (["--capabilities", "--format", "yaml"], "must be json, prompt, openai or mcp"),
]  # fmt: skip
#: Of the forms for people: what stands on standard error.
COMMANDS: list[tuple[str, str]] = [
    ("status", "did you mean `--status`?"),
    ("call x", "did you mean `--call`?"),
    ("lgo", "did you mean `log`?"),
    ("--version x", "too many words: `x`"),
    ("config x", "too many words: `x`"),
    ("config --jsn", "did you mean `--json`?"),
    ("log --since -1h", "--since needs a value, and `-1h` is none"),
    ("log --since=-1h", "must be a number and s, m, h, d or w"),
    ("log --since 1_0h", "got `1_0h`"),
    ("log --since=", "--since is empty"),
    ("log --since yesterday", "or a date in UTC"),
    ("log --limit 1_0", "must be a whole number, got `1_0`"),
    ("log --limit 0", "must be at least 1"),
    ("log --grep (", "no regular expression"),
    ("log --run nope", "nothing was asked of the hand yet"),
    ("probe --backend nope", "--backend cannot be `nope`"),
    ("probe --host http://x/", "write it like `api.example.com:443`"),
    ("secret", "missing one of set, list, remove"),
    ("secret set", "missing NAME"),
    ("secret set 1-x", "cannot be the name of a secret"),
    ("secret remove nope", "no secret is called `nope`"),
    ("trust nope", "`nope` is no folder"),
    ("trust --forget --show", "cannot go together"),
    ("backup", "missing FILE"),
    ("backup nope/x.tgz", "name a file in a folder that you may write"),
    ("backup a.txt/x.tgz", "name a file in a folder that you may write"),
    ("backup a.txt", "exists; choose another name"),
    ("backup x.zip", "end the name in .tar.gz"),
    ("backup nope.tgz --restore", "`nope.tgz` does not exist"),
    ("backup . --restore", "cannot be read: is a directory"),
    ("backup a.txt --restore", "is no archive that `openry backup` wrote"),
    ("output nope", "there are list, show, grep"),
    ("output show", "missing name"),
    ("output show out-9", "there is no output `out-9`: it never was, or it was pruned"),
    ("output show a.txt --lines 5:1", "A not after B"),
    ("output show a.txt --lines x", "must be A:B"),
    ("output show a.txt --bogus", "unknown option `--bogus`"),
    ("output grep a.txt (", "no regular expression"),
    ("output digest a.txt --tokens 0", "--tokens must be at least 1"),
    ("output slice a.txt --into a.txt", "a file is in the way"),
    ("output merge nope", "name a folder that openry output slice made"),
    ("policy", "missing one of explain, test"),
    ("policy explain", "missing CMD"),
    ("policy explain ls --cwd nope", "folder `nope` does not exist"),
    ("policy explain ls --cwd a.txt", "is a file, not a folder"),
    ("policy explain ls --policy nope", "there are strict, moderate, permissive"),
    ("policy test nope.yaml", "cannot be read"),
    ("capability", "missing one of list, show"),
    ("capability show nope", "no capability is called `nope`"),
    ("capability add nope", "folder `nope` does not exist"),
    ("capability add a.txt", "is a file, not a folder"),
    ("capability add .", "no tool is defined here"),
    ("capability choose x --top 0", "--top must be at least 1"),
    ("capability choose x --dir nope", "folder `nope` does not exist"),
    ("mcp --dir nope", "folder `nope` does not exist"),
    ("mcp --sandbox nope", "--sandbox cannot be `nope`"),
    ("mcp --policy nope", "no policy `nope`"),
    ("serve --port 70000", "must be 0 to 65535"),
    ("serve --port x", "must be a whole number"),
    ("serve --token-file new/token", "folder `new` of --token-file does not exist"),
    ("serve --token-file .", "is a folder"),
    ("serve --host 0.0.0.0", "is open to the network, and"),
]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, migrated: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a file in it, and a home of its own."""
    folder, home = tmp_path / "here", tmp_path / "home"
    folder.mkdir()
    home.mkdir(mode=0o700, exist_ok=True)
    shutil.copy(migrated, home / "openry.db")
    (folder / "a.txt").write_text("x\n")
    monkeypatch.chdir(folder)
    monkeypatch.setenv("OPENRY_HOME", str(home))
    monkeypatch.delenv("OPENRY_DB", raising=False)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO()))
    monkeypatch.setattr(process, "wake_on_signals", lambda: -1)  # the tests' own process
    return folder


@pytest.mark.parametrize(("words", "said"), FORMS, ids=[" ".join(w)[:60] for w, _ in FORMS])
def test_a_form_that_means_nothing(
    here: Path, capfd: pytest.CaptureFixture[str], words: list[str], said: str
):
    """Answered in JSON, for an agent reads it."""
    status = main(words)

    out, err = capfd.readouterr()
    answer = json.loads(out)
    assert (status, answer["exit_code"], err) == (2, 2, "")
    assert said in answer["stderr"]
    assert answer["stderr"].count("\n") == 1
    assert [path.name for path in here.iterdir()] == ["a.txt"]


@pytest.mark.parametrize(("line", "said"), COMMANDS, ids=[line for line, _ in COMMANDS])
def test_a_command_that_means_nothing(
    here: Path, capfd: pytest.CaptureFixture[str], line: str, said: str
):
    """Said on standard error, for a person reads it."""
    status = main(line.split(" "))

    out, err = capfd.readouterr()
    assert (status, out) == (2, "")
    assert said in err and err.startswith("openry: ")
    assert err.count("\n") == 1
    assert [path.name for path in here.iterdir()] == ["a.txt"]


def test_an_empty_command_has_no_verdict(capfd: pytest.CaptureFixture[str]):
    """An empty word, which a shell's unset variable gives."""
    assert main(["policy", "explain", " "]) == 2
    assert "CMD is empty" in capfd.readouterr().err


@pytest.mark.parametrize("where", ["nope://x", "postgresql://me:wordpass@h/x", "a:b://["])
def test_a_ledger_that_cannot_be_opened(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, where: str
):
    """An address without a driver is one sentence, and no password."""
    monkeypatch.setenv("OPENRY_DB", where)
    for words in (["log"], ["init"]):
        assert main(words) == 74
        err = capfd.readouterr().err
        assert "cannot be opened" in err and "set OPENRY_DB to a file" in err
        assert "wordpass" not in err and err.count("\n") == 1


def test_a_number_for_a_text_is_taken_and_said(capfd: pytest.CaptureFixture[str], here: Path):
    """With the parameter's schema, for whoever calls again."""
    (here / "5").write_text("x\ny\n")

    assert main(["--call", "count_lines", "--args", '{"path": 5}']) == 0

    result = json.loads(json.loads(capfd.readouterr().out)["stdout"])
    assert result["data"] == 2
    assert result["notes"][0].startswith('`path` is a string: 5 was taken for "5"; its schema: {')


def test_help_of_a_command(capfd: pytest.CaptureFixture[str]):
    """`openry help log` is `openry log --help`."""
    with pytest.raises(SystemExit) as ended:
        main(["help", "log"])

    assert ended.value.code == 0
    assert "--since" in capfd.readouterr().out


def test_a_door_to_the_network_is_said(openry: OpenRY):
    """With a token that is there: what it means stands on standard error before anybody comes."""
    openry.home.mkdir(mode=0o700, exist_ok=True)
    (openry.home / "serve.token").touch(mode=0o600)
    (openry.home / "serve.token").write_text("x" * 40)
    server = openry.start("serve", "--host", "0.0.0.0", "--port", "0")
    try:
        assert b"listening on" in server.stdout.readline()
    finally:
        server.terminate()
        said = server.communicate()[1].decode()

    assert "0.0.0.0 is open to the network, without encryption" in said
