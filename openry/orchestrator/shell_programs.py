"""Words of a command that another program reads as program text.

A value there would be run, however well it is quoted for the shell.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

Found = tuple[int, str, str]  #: value, where it stands, the way out ("" for `env:`)


@dataclass(slots=True)
class Word:
    """One word: its text with quotes taken off and NUL for each value, and the values."""

    text: str = ""
    values: list[int] = field(default_factory=list)
    role: str = ""  #: `target` or `herestring` when it belongs to a redirection
    substitution: bool = False  #: holds `<(…)`

    def add_value(self, number: int) -> None:
        self.text += "\0"
        self.values.append(number)


_SHELLS = {"sh", "bash", "dash", "ksh", "mksh", "zsh", "ash", "fish", "rbash", "busybox"}
#: Interpreters with the options whose next word is a program.
_INTERPRETERS: dict[str, str] = {
    "python": "c", "pypy": "c", "perl": "eE", "ruby": "e", "node": "ep", "nodejs": "ep",
    "bun": "ep", "php": "r", "lua": "e", "Rscript": "e", "osascript": "e", "expect": "c",
    "tclsh": "", "psql": "c", "mysql": "e", "su": "c", "script": "c", "flock": "c", "runuser": "c",
}  # fmt: skip
_LONG_PROGRAM_OPTIONS = {"--command", "--eval", "--print", "--execute", "--expression", "--run"}
#: Programs of which every argument may be read as program text.
_ALL_ARGUMENTS = {
    "eval": "", "trap": "", "alias": "", "watch": "", "parallel": "", "at": "", "let": "",
    "make": "", "gmake": "",
}  # fmt: skip
#: Programs whose first argument is a program, with the options that take a value of their own
#: and those that name a file with the program.
_FIRST_ARGUMENT = {
    "awk": ("Fv", "f"), "gawk": ("Fv", "f"), "mawk": ("Fv", "f"), "nawk": ("Fv", "f"),
    "sed": ("l", "f"), "gsed": ("l", "f"), "jq": ("L", "f"), "yq": ("", "f"),
}  # fmt: skip
_NAMED_VALUES = {"--arg", "--argjson", "--slurpfile", "--rawfile"}
_WAYS_OUT = {
    "awk": 'give it a name under `env:` and use ENVIRON["NAME"]',
    "sed": "use the capability `replace_text`, or `env:` and awk's ENVIRON",
    "jq": "pass it with `--arg NAME {{ … }}`",
    "python": "pass it as an argument after the program and read sys.argv",
    "sh": "pass it as an argument after the program: sh -c '… \"$1\"' _ {{ … }}",
}
_DECLARERS = {
    "declare", "typeset", "local", "readonly", "export", "unset", "read", "mapfile", "readarray",
    "getopts",
}  # fmt: skip
_WRAPPERS = {
    "env", "sudo", "doas", "timeout", "nice", "nohup", "setsid", "stdbuf", "ionice", "exec",
    "command", "builtin", "time", "xargs", "find", "chroot", "unshare",
}  # fmt: skip


def program_words(words: Sequence[Word], piped: Sequence[int]) -> Iterator[Found]:
    """Values among `words` that would be run. `piped` are values further up the pipeline."""
    arguments = [word for word in words if not word.role]
    for place, word in enumerate(arguments):
        name = _program(word)
        rest = arguments[place + 1 :]
        if name in _SHELLS or name in _INTERPRETERS:
            yield from _interpreter(name, rest)
        if place == 0 or _command_position(arguments[:place]):
            yield from _by_name(name, rest)
            if _reads_program(name, rest):
                yield from _standard_input(name, words, piped)


def _program(word: Word) -> str:
    """The program a word names, versions cut off: `/usr/bin/python3.11` is `python`."""
    name = word.text.rsplit("/", 1)[-1]
    return (
        re.sub(r"[\d.]+$", "", name) if name.startswith(("python", "pypy", "lua", "php")) else name
    )


def _command_position(before: Sequence[Word]) -> bool:
    """Whether a wrapper stands before, so that a command may begin here."""
    return _program(before[0]) in _WRAPPERS


def _interpreter(name: str, rest: Sequence[Word]) -> Iterator[Found]:
    """The word after `-c` and its like; later words are the program's arguments."""
    letters = "c" if name in _SHELLS else _INTERPRETERS[name]
    way_out = _WAYS_OUT["sh"] if name in _SHELLS else _WAYS_OUT.get(name, "")
    for place, word in enumerate(rest):
        option = word.text
        long = option.partition("=")[0] in _LONG_PROGRAM_OPTIONS
        if long and "=" in option:
            yield from _in(word, f"in a program for `{name}`", way_out)
        cluster = re.match(r"-([A-Za-z]+)", option)
        named = cluster is not None and any(letter in cluster.group(1) for letter in letters)
        if named and word.values:
            yield from _in(word, f"in a program for `{name}`", way_out)
        if long or named:
            following = next((w for w in rest[place + 1 :] if not w.text.startswith("-")), None)
            if following is not None:
                yield from _in(following, f"in a program for `{name}`", way_out)
            if name in _SHELLS or name in ("python", "su"):
                return
        elif not option.startswith("-"):
            if word.substitution:
                yield from _in(word, f"in a program for `{name}`", way_out)
            if name not in ("su", "script", "flock", "runuser", "psql", "mysql", "busybox"):
                return


def _reads_program(name: str, rest: Sequence[Word]) -> bool:
    """Whether a program takes its program from standard input, none being named."""
    plain = [word for word in rest if not word.text.startswith("-") or word.text == "-"]
    options = "".join(word.text for word in rest if re.fullmatch(r"-[A-Za-z]+", word.text))
    if name in ("at", "batch", "crontab", "parallel"):
        return True
    if name in ("source", "."):
        return any(word.substitution or "/dev/" in word.text for word in rest)
    if name == "xargs":
        runs = any(_program(word) in _SHELLS or _program(word) in _INTERPRETERS for word in rest)
        return runs and any(re.match(r"-[iI]|--replace", word.text) for word in rest)
    if name in ("psql", "mysql", "sqlite3", "ssh"):
        return len(plain) < 2 and not set(options) & set("cef")
    if name in ("su", "script", "flock", "runuser"):
        return False
    letters = "c" if name in _SHELLS else _INTERPRETERS.get(name)
    if letters is None or set(options) & set(letters):
        return False
    return not plain or plain[0].text == "-" or (name in _SHELLS and "s" in options)


def _standard_input(name: str, words: Sequence[Word], piped: Sequence[int]) -> Iterator[Found]:
    where = f"in what `{name}` reads as its program"
    for number in piped:
        yield number, where, ""
    for word in words:
        if word.role == "herestring" or (word.substitution and name in ("source", ".")):
            yield from _in(word, where, "")


def _by_name(name: str, rest: Sequence[Word]) -> Iterator[Found]:
    if name in _ALL_ARGUMENTS:
        for word in rest:
            yield from _in(word, f"in what `{name}` runs", "")
    elif name == "sqlite3":
        yield from _all_but_first(name, rest)
    elif name in _FIRST_ARGUMENT:
        yield from _first_argument(name, rest)
    elif name == "ssh":
        yield from _remote(rest)
    elif name in _DECLARERS or name in ("test", "[", "printf"):
        yield from _variable_names(name, rest)
    elif name == "env":
        yield from _split_string(rest)


def _first_argument(name: str, rest: Sequence[Word]) -> Iterator[Found]:
    takes, files = _FIRST_ARGUMENT[name]
    kind = next((k for k in ("awk", "sed") if name.endswith(k)), "jq")
    where, way_out = f"in a program for `{name}`", _WAYS_OUT[kind]
    named, place = False, 0
    while place < len(rest):
        word, place = rest[place], place + 1
        option, _, inline = word.text.partition("=")
        if option in _NAMED_VALUES:
            place += 2
        elif option in ("--expression", "--source", "--file", "--from-file") or (
            kind == "sed" and re.match(r"-[nErszu]*e", word.text)
        ):
            named = True
            spread = not inline and (option.startswith("--") or word.text.endswith("e"))
            program = rest[place : place + 1] if spread else [word]
            place += spread
            if "file" not in option:
                for text in program:
                    yield from _in(text, where, way_out)
        elif word.text[:1] == "-" and len(word.text) > 1:
            named |= word.text[1] in files
            place += len(word.text) == 2 and word.text[1] in takes + files
        elif not named:
            yield from _in(word, where, way_out)
            return


def _all_but_first(name: str, rest: Sequence[Word]) -> Iterator[Found]:
    """A database's name, then statements."""
    for word in [word for word in rest if not word.text.startswith("-")][1:]:
        yield from _in(word, f"in statements for `{name}`", "")


def _remote(rest: Sequence[Word]) -> Iterator[Found]:
    """After the host, everything is a command line for the other side's shell."""
    takes_value = set("bcDEeFIiJLlmOopQRSWw")
    skip = host = False
    for word in rest:
        if skip:
            skip = False
        elif not host and word.text.startswith("-"):
            skip = len(word.text) == 2 and word.text[1] in takes_value
        elif not host:
            host = True
        else:
            yield from _in(word, "in a command for `ssh`", "send it on standard input")


def _variable_names(name: str, rest: Sequence[Word]) -> Iterator[Found]:
    """A variable's name may hold an index, and an index is evaluated."""
    evaluates = name in ("declare", "typeset", "local", "readonly") and any(
        re.match(r"-\w*i", word.text) for word in rest
    )
    for place, word in enumerate(rest):
        if name in ("test", "[", "printf"):
            if place and rest[place - 1].text == "-v":
                yield from _in(word, "as a variable's name", "")
        elif evaluates or "\0" in word.text.partition("=")[0]:
            yield from _in(word, "as a variable's name" if not evaluates else "in arithmetic", "")


def _split_string(rest: Sequence[Word]) -> Iterator[Found]:
    for place, word in enumerate(rest):
        if word.text.startswith(("-S", "--split-string")):
            for program in (word, *rest[place + 1 : place + 2]):
                yield from _in(program, "in what `env -S` runs", "")


def _in(word: Word, where: str, way_out: str) -> Iterator[Found]:
    for number in word.values:
        yield number, where, way_out
