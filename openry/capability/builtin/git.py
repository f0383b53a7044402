"""The `git` pack: looking at a repository, maybe a stranger's, without running what is in it.

A repository's own settings can name programs: monitors, filters, pagers, signature checkers. Each
call switches them off, and no object is fetched from elsewhere.
"""

# Importing pathlib costs more than most calls take.
# ruff: noqa: PTH112, PTH120
# ruff: noqa: PTH100, PTH113, PTH118

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Sequence

from openry.capability.builtin.failure import ToolFailure
from openry.capability.builtin.lines import json_line

_LIMIT_S = 50
_ANSWER_LIMIT = 4 * 1024 * 1024
_ENV = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_PAGER": "cat",
    "LC_ALL": "C.UTF-8",
}
#: Settings by which a repository would start a program, or reach another one.
_HARMLESS = (
    "core.fsmonitor=false",
    f"core.hooksPath={os.devnull}",
    "core.pager=cat",
    "core.sshCommand=false",
    "core.alternateRefsCommand=",
    "log.showSignature=false",
    "gpg.program=false",
    "protocol.allow=never",
    "submodule.recurse=false",
    "core.quotePath=false",
    "color.ui=false",
)
_PLAIN = ("--no-ext-diff", "--no-textconv", "--no-color", "--ignore-submodules=all")
_CHANGES = {
    "M": "modified",
    "T": "type_changed",
    "A": "added",
    "D": "deleted",
    "R": "renamed",
    "C": "copied",
    "U": "conflict",
}
_FIELDS = ("commit", "author", "email", "date", "subject")


def git_status(path: str) -> bytes:
    """Branch and changed files as JSON."""
    words = ("status", "--porcelain=v2", "--branch", "-z", "--untracked-files=all")
    told = _git(path, *words, "--ignore-submodules=all", "--no-renames")
    about: dict[str, object] = {"branch": "", "upstream": None, "ahead": 0, "behind": 0}
    changes = []
    for row in filter(None, told.decode("utf-8", "surrogateescape").split("\0")):
        kind, _, rest = row.partition(" ")
        if kind == "#":
            _take_header(about, rest)
        else:
            changes.append(_change(kind, rest))
    state = {
        **about,
        "clean": not changes,
        "changes": sorted(changes, key=lambda c: str(c["path"])),
    }
    return json_line(state)


def _take_header(about: dict[str, object], text: str) -> None:
    key, _, value = text.partition(" ")
    if key == "branch.head":
        about["branch"] = value
    elif key == "branch.upstream":
        about["upstream"] = value
    elif key == "branch.ab":
        ahead, behind = value.split()
        about["ahead"], about["behind"] = int(ahead), -int(behind)


def _change(kind: str, rest: str) -> dict[str, object]:
    """One file: what happened to it, and whether that is staged."""
    if kind == "?":
        return {"path": rest, "change": "untracked", "staged": False}
    if kind == "u":
        return {"path": rest.split(" ", 9)[9], "change": "conflict", "staged": False}
    index, work = rest[0], rest[1]
    letter = work if work != "." else index
    return {
        "path": rest.split(" ", 7)[7],
        "change": _CHANGES.get(letter, letter),
        "staged": index != ".",
    }


def git_log(
    path: str,
    count: int,
    revision: str,
    file: str | None = None,
    author: str | None = None,
    message: str | None = None,
    since: str | None = None,
    until: str | None = None,
) -> bytes:
    """Commits as JSON, newest first."""
    form = "%x00".join(("%H", "%an", "%ae", "%aI", "%s")) + "%x00"
    words = ["log", f"-n{count}", f"--format=tformat:{form}", "-z", "--no-show-signature"]
    words += ["--fixed-strings", "--regexp-ignore-case"]
    for name, value in (("author", author), ("grep", message), ("since", since), ("until", until)):
        words += [f"--{name}={value}"] if value else []
    told = _git(path, *words, "--end-of-options", revision, "--", *_files(path, file))
    cells = told.decode("utf-8", "replace").split("\0")
    rows = [cells[at : at + 5] for at in range(0, len(cells) - 5, 6)]
    return json_line([dict(zip(_FIELDS, row, strict=True)) for row in rows])


def git_diff(
    path: str,
    staged: bool,
    summary: bool,
    revision: str | None = None,
    other: str | None = None,
    file: str | None = None,
) -> bytes:
    """The changes as a unified diff, or files with counts of lines."""
    words = [
        "diff",
        *_PLAIN,
        *(["--stat=200"] if summary else []),
        *(["--cached"] if staged else []),
    ]
    if other and not revision:
        raise ToolFailure("bad_arguments", "`other` needs `revision`, the older of the two")
    if staged and other:
        raise ToolFailure("bad_arguments", "two revisions have no staging area; leave `staged` out")
    commits = [each for each in (revision, other) if each]
    return _git(path, *words, "--end-of-options", *commits, "--", *_files(path, file))


def git_show(path: str, revision: str, summary: bool, file: str | None = None) -> bytes:
    """One commit with its changes; with `file`, that file as it was then."""
    if file:
        (name,) = _files(path, file)
        place = f"{_commit(path, revision)}:./{name}"
        return _git(path, "show", *_PLAIN[:3], "--end-of-options", place)
    kind = "--stat=200" if summary else "--patch"
    words = ("show", *_PLAIN, kind, "--no-show-signature", "--format=medium", "--date=iso-strict")
    return _git(path, *words, "--end-of-options", _commit(path, revision), "--")


def _commit(path: str, revision: str) -> str:
    found = _git(path, "rev-parse", "--verify", "--end-of-options", f"{revision}^{{commit}}")
    return found.decode().split("\n")[-2]


def _files(path: str, file: str | None) -> Iterator[str]:
    """The file relative to the repository's folder, as git takes it."""
    if file:
        yield os.path.relpath(os.path.abspath(file), os.path.abspath(path))


# --- starting git -------------------------------------------------------------------------


def _git(path: str, *words: str) -> bytes:
    """What git answers.

    Raises:
        ToolFailure: It cannot; the message is its own.
    """
    _check_place(path)
    return _run(path, [*_switched_off(path), *words])


def _check_place(path: str) -> None:
    """Refuses a repository that is somewhere else: in a folder above, or by a link or setting."""
    if not os.path.isdir(path):
        raise ToolFailure("not_found", f"`{path}`: no such folder")
    asked = ("--absolute-git-dir", "--show-toplevel")
    told = _run(path, ["rev-parse", "--path-format=absolute", *asked, "--git-common-dir"])
    here = os.path.realpath(os.curdir)
    places = told.decode("utf-8", "surrogateescape").splitlines()
    alternates = os.path.join(places[-1], "objects", "info", "alternates") if places else ""
    if os.path.isfile(alternates):
        with open(alternates, encoding="utf-8", errors="surrogateescape") as file:
            objects = os.path.join(places[-1], "objects")
            places += [os.path.join(objects, line.strip()) for line in file if line.strip()]
    for place in places:
        if not f"{os.path.realpath(place)}/".startswith(f"{here.rstrip('/')}/"):
            raise ToolFailure(
                "permission", f"the repository of `{path}` lies outside the workspace: {place}"
            )


def _switched_off(path: str) -> list[str]:
    """Options that make every filter the repository names pass bytes on as they are."""
    looked = ("config", "--null", "--name-only", "--get-regexp", r"^filter\.")
    named = _run(path, list(looked), may_fail=True).decode("utf-8", "surrogateescape")
    drivers = {each.rpartition(".")[0] for each in named.split("\0") if each.count(".") > 1}
    options: list[str] = []
    for driver in sorted(drivers):
        for key, value in (("clean", ""), ("smudge", ""), ("process", ""), ("required", "false")):
            options += ["-c", f"{driver}.{key}={value}"]
    return options


def _run(path: str, words: Sequence[str], *, may_fail: bool = False) -> bytes:
    options = [word for setting in _HARMLESS for word in ("-c", setting)]
    above = os.path.dirname(os.path.realpath(os.curdir))
    kept = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
    try:
        made = subprocess.run(
            ["git", "--no-pager", "--literal-pathspecs", *options, *words],
            cwd=path,
            env={**kept, **_ENV, "GIT_CEILING_DIRECTORIES": above},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_LIMIT_S,
            check=False,
        )
    except FileNotFoundError:
        raise ToolFailure("missing_dependency", "git is not installed; install git") from None
    except subprocess.TimeoutExpired:
        raise ToolFailure("timeout", f"git took longer than {_LIMIT_S} s") from None
    except ValueError:
        raise ToolFailure("bad_arguments", "an argument holds a NUL character") from None
    if made.returncode and not may_fail:
        raise _explained(made.stderr.decode("utf-8", "replace"), path)
    if len(made.stdout) > _ANSWER_LIMIT:
        raise ToolFailure(
            "resource", f"the answer has {len(made.stdout)} bytes; ask for a summary or one file"
        )
    return made.stdout


_SAID = (
    ("not a git repository", "not_found", "`{path}` is no git repository"),
    ("dubious ownership", "permission", "the repository belongs to another user"),
    ("does not have any commits", "not_found", "the repository has no commits yet"),
    ("bad revision 'HEAD'", "not_found", "the repository has no commits yet"),
    ("unknown revision", "not_found", "{said}"),
    ("bad revision", "not_found", "{said}"),
    ("ambiguous argument", "not_found", "{said}"),
    ("Needed a single revision", "not_found", "there is no such commit"),
    ("does not exist in", "not_found", "{said}"),
    ("exists on disk, but not in", "not_found", "{said}"),
    ("not allowed", "refused", "{said}"),
)


def _explained(stderr: str, path: str) -> ToolFailure:
    lines = [line.removeprefix("fatal: ") for line in stderr.splitlines() if line.strip()]
    said = next(
        (each for each in lines if not each.startswith(("warning:", "hint:"))), "git failed"
    )
    for sign, name, message in _SAID:
        if sign in stderr:
            return ToolFailure(name, message.format(path=path, said=said))
    return ToolFailure("bad_arguments", said)
