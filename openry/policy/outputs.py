"""What a command prints, as far as its lines, or the words of them, are names of files."""

from __future__ import annotations

import re
from itertools import pairwise

from openry.policy.calls import Call, Touched
from openry.policy.derived import found_below, texts_of
from openry.policy.numbers import prints_numbers, speaks_otherwise
from openry.policy.profiles import profile_of
from openry.policy.programs import read_words
from openry.policy.script import Shared, Simple
from openry.policy.words import DEEP, END, NAME, STAR, UNKNOWN, VALUE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

Paths = tuple[str, ...]  #: empty where nothing bounds them

#: A format of `date` whose result has no slash and is neither empty nor dots.
_DATE = re.compile(r"\+(?!-)(?:%[-_0^]?[aAbBCdeFGgHIjklMmNpPqrRSsTuVWwyYZz]|[\w: -]|\.(?=%))+")
_NEVER_EMPTY = frozenset(("name", "date", "here", "temporary", "part", "words", "format"))
_FIND_STOPS = frozenset(
    "-execdir -ok -okdir -ls -fls -fprint -fprintf -fprint0 -files0-from".split()
)
#: Of `find -printf`: names, and what has no slash in it.
_FOUND_FORMAT = re.compile(
    r"(?:%[-0-9]*(?:[pPfsktyYdimMnuUgGD]|[TACB][@+a-zA-Z])|[^%\\/]|\\[nt0]|%%)*"
)
_TESTED = r"(?:[^{}=()]|[=!<>]=)*"
_ONE_WORD = re.compile(
    rf"{_TESTED}\{{\s*(?:if\s*\({_TESTED}\)\s*)?\{{?\s*print(?:\s*\$(?:[0-9]+|NF))?\s*;?[\s}}]*\}}\s*"
)
_TRIMS = re.compile(r"s([/|#,])\^(?:\\?\.(?:/|\\/)| \*|\[\[:space:\]\]\*|\\s[*+])\1\1g?")
_REPLACES = re.compile(r"s/([\w -]+)/([\w -]+)/g?")
_PLAIN_SIGN = re.compile(r"[\w-]")
_CASES = {
    **dict.fromkeys((("a-z", "A-Z"), ("[a-z]", "[A-Z]"), ("[:lower:]", "[:upper:]")), "^"),
    **dict.fromkeys((("A-Z", "a-z"), ("[A-Z]", "[a-z]"), ("[:upper:]", "[:lower:]")), ","),
}
_BLANKS = frozenset((" ", "\\n", "\n", "\\t", "\t", "\\0", "[:space:]", "[:blank:]"))
_LS_NAMES = re.compile(r"-[1AtrSdXUvhFpCxB]|--(?:almost-all|reverse|directory)")
_GREP_NAMES = frozenset(("-l", "-L", "--files-with-matches", "--files-without-match"))
_GREP_DEEP = frozenset(("-r", "-R", "--recursive", "--dereference-recursive"))
_GREP_OTHERS = frozenset("-o -c -b -n -H -r -R --only-matching --count -d --directories".split())


def printed(pipeline: Sequence[Simple] | None, shared: Shared) -> Paths:
    """What the last of `pipeline`, which is all there is, prints; every line, every word of it.

    Where the output may be empty, the empty text is among them. `shared` keeps what names are
    given to values.
    """
    if not pipeline or not pipeline[-1].words:
        return ()
    last = pipeline[-1]
    prints = profile_of(last.words[0].text).prints
    if prints == "input" and not last.input:
        return ()
    found = _printed(last, last.input, shared) if prints else ()
    if not found and prints_numbers(pipeline):
        return ("", NAME)
    return tuple(dict.fromkeys(("", *found))) if found and prints not in _NEVER_EMPTY else found


def _printed(simple: Simple, given: Paths, shared: Shared) -> Paths:
    name = simple.words[0].literal if simple.words else None
    prints = profile_of(name).prints if name else ""
    if name is None or not prints or any(map(speaks_otherwise, simple.redirects)):
        return ()
    call = read_words(name, simple.words, given)
    if call.unclear or call.opaque or call.hazards:
        return ()
    return _KINDS[prints](call, given, shared)


def _passed(call: Call, given: Paths, shared: Shared) -> Paths:
    """Some of the lines that it is given, as they were."""
    changing = set(call.options) & call.profile.prints_unless
    listed = any(map(_lists, call.files))
    if changing or call.operands or listed or not given:
        return ()
    return (NAME, *given) if call.profile.name == "uniq" and "-c" in call.options else given


def _name(call: Call, given: Paths, shared: Shared) -> Paths:
    """A word without a slash."""
    return () if set(call.options) & call.profile.prints_unless else (NAME,)


def _find(call: Call, given: Paths, shared: Shared) -> Paths:
    if _FIND_STOPS & set(call.options):
        return ()
    if "-exec" in call.options:
        if {"-print", "-print0", "-delete"} & set(call.options):
            return ()
        made = [_printed(Simple(inner), (), shared) for inner in call.inner]
        return tuple(one for some in made for one in some) if all(made) else ()
    found = found_below(call.operands, call.argv)
    if "-printf" not in call.options or not found:
        return found
    texts = [word.literal or "%l" for word in call.argv]
    formats = [after for one, after in pairwise(texts) if one == "-printf"]
    return _columns(found) if all(map(_FOUND_FORMAT.fullmatch, formats)) else ()


def _columns(names: Iterable[str]) -> Paths:
    """Lines of names with other words beside them: each word, and what a whole line is."""
    return (NAME, *names, DEEP)


def _table(call: Call, given: Paths, shared: Shared) -> Paths:
    """`wc`, `du`, `md5sum`: a line for each file, its name the last word."""
    if set(call.options) & call.profile.prints_unless or any(map(_lists, call.files)):
        return ()
    named = texts_of(call.operands)
    if named is None:
        return ()
    deeper = [f"{one.rstrip('/')}/{DEEP}" for one in named if call.profile.name == "du"]
    return _columns((*named, *deeper))


def _lists(touched: Touched) -> bool:
    """Whether it is a list of further files."""
    return touched.word.text == UNKNOWN and not touched.word.paths


def _column(call: Call, given: Paths, shared: Shared) -> Paths:
    """`awk '{print $2}'`: one word of each line."""
    program = call.operands[0].literal if len(call.operands) == 1 else None
    return given if program and not call.options and _ONE_WORD.fullmatch(program) else ()


def _trimmed(call: Call, given: Paths, shared: Shared) -> Paths:
    """`sed` that takes blanks or `./` from the beginnings, or puts plain text for plain text."""
    program = call.operands[0].literal if len(call.operands) == 1 else None
    if not program or set(call.options) - {"-E", "-r"}:
        return ()
    if found := _REPLACES.fullmatch(program):
        return tuple(shared.value(one, "/", f"{found[1]}\n{found[2]}") for one in given)
    if not _TRIMS.fullmatch(program):
        return ()
    return (*given, *(shared.value(one, "#", "./") for one in given if "." in program))


def _respaced(call: Call, given: Paths, shared: Shared) -> Paths:
    """`tr` of blanks to blanks, of letters to their other case, of one sign to another."""
    signs = [word.literal or "" for word in call.operands]
    if set(call.options) - {"-s"} or len(signs) != 2:
        return ()
    if case := _CASES.get((signs[0], signs[1])):
        return tuple(shared.value(one, case) for one in given)
    if all(len(sign) == 1 for sign in signs) and _PLAIN_SIGN.fullmatch(signs[1]):
        return tuple(shared.value(one, "/", "\n".join(signs)) for one in given)
    blanks = all(word.literal in _BLANKS for word in call.operands)
    return given if blanks else ()


def _program(call: Call, given: Paths, shared: Shared) -> Paths:
    """`which` and `command -v`: where a program lies."""
    if call.profile.runs and not {"-v"} & set(call.options):
        return ()
    words = call.operands or call.argv[2:]
    names = [word.literal for word in words]
    if len(names) != 1 or not names[0] or not re.fullmatch(r"[\w.+-]+", names[0]):
        return ()
    return (shared.value(names[0], "program"),)


def _ls(call: Call, given: Paths, shared: Shared) -> Paths:
    named = texts_of(call.operands)
    if named is None or not all(_LS_NAMES.fullmatch(option) for option in call.options):
        return ()
    several = len(named) > 1 or any(STAR in one for one in named)
    name = DEEP if set(call.options) & {"-A", "--almost-all"} else STAR
    return (name, *named, *(f"{one}:" for one in named if several))


def _grep(call: Call, given: Paths, shared: Shared) -> Paths:
    options = set(call.options)
    if call.name == "rg" or not options & _GREP_NAMES:
        own = 0 if options & call.profile.pattern_options else 1
        filters = call.name != "rg" and len(call.operands) == own and not options & _GREP_OTHERS
        return given if filters else ()
    named = texts_of(call.operands[0 if options & call.profile.pattern_options else 1 :])
    if named is None:
        return ()
    if call.name != "rg" and not options & _GREP_DEEP:
        return tuple(named)
    roots = [one.rstrip("/") for one in named]
    return (*named, *(f"{one}/{DEEP}" for one in roots)) if roots else (DEEP,)


def _git(call: Call, given: Paths, shared: Shared) -> Paths:
    sub = " ".join(word.text for word in call.sub)
    if any(".." in word.text.split("/") or word.text[:1] == "/" for word in call.operands):
        return ()
    options = set(call.options)
    if sub == "ls-files" and not options & {"-s", "-t", "-v", "-f", "--stage", "--format"}:
        return (DEEP,)
    if sub == "diff" and options & {"--name-only"} and not options & {"--no-index"}:
        return (DEEP,)
    if sub == "branch" and options == {"--show-current"}:
        return (DEEP,)
    if sub == "rev-parse" and options == {"--show-toplevel"} and not call.operands:
        return (shared.value("", "toplevel"),)
    if sub == "rev-parse" and options <= {"--short", "--verify", "-q"} and call.operands:
        return (NAME,)
    return (NAME,) if sub == "merge-base" or (sub == "describe" and "--all" not in options) else ()


def _said(call: Call, given: Paths, shared: Shared) -> Paths:
    """`echo`: its words."""
    words = call.operands
    if any(word.text[:1] == "-" or "\\" in word.text for word in words):
        return ()
    found = texts_of(words)
    if found is None:
        return ()
    if len(words) > 1 and any(word.literal is None for word in words):
        return ()
    nothing = () if all(word.literal is not None for word in words) else ("",)  # of `-n`
    return tuple(dict.fromkeys((" ".join(found), *found, *nothing)))


def _formatted(call: Call, given: Paths, shared: Shared) -> Paths:
    """`printf '%s\\n' WORDS`."""
    words = call.operands
    if call.options or not words or words[0].literal not in ("%s\\n", "%s", "%s\\0", "%s "):
        return ()
    found = texts_of(words[1:])
    one_each = words[0].literal != "%s" or len(words) == 2
    return tuple(found) if found and one_each else ()


def _date(call: Call, given: Paths, shared: Shared) -> Paths:
    formats = [word.literal or "" for word in call.operands]
    plain = len(formats) == 1 and len(formats[0]) > 1 and _DATE.fullmatch(formats[0])
    return (NAME,) if plain else ()


def _here(call: Call, given: Paths, shared: Shared) -> Paths:
    return (f"{VALUE}PWD{END}",)


def _made(call: Call, given: Paths, shared: Shared) -> Paths:
    """`mktemp`: a new name in a folder."""
    folders = [one.word for one in call.files if one.how == "write" and one.word.text != "."]
    named = texts_of(call.operands)
    if named is None:
        return ()
    given_folders = texts_of([one for one in folders if one not in call.operands])
    if given_folders is None:
        return ()
    if call.operands:
        bases = given_folders or (["/tmp"] if "-t" in call.options else [""])  # noqa: S108
        return tuple(
            f"{base}/{one}".removeprefix("/" if not base else "") for base in bases for one in named
        )
    return tuple(f"{base}/{NAME}" for base in given_folders or ["/tmp"])  # noqa: S108


def _started(call: Call, given: Paths, shared: Shared) -> Paths:
    """`xargs`: what the command prints that it starts."""
    if len(call.inner) != 1 or set(call.options) & {"-a", "--arg-file", "-t", "--verbose"}:
        return ()
    argv = call.inner[0]
    return _printed(Simple(argv), (), shared) if argv[0].literal != "xargs" else ()


def _part(call: Call, given: Paths, shared: Shared) -> Paths:
    """`basename` and `dirname`."""
    words = call.operands
    endings = [word for option, word in call.values if option in ("-s", "--suffix")]
    if call.name == "basename" and len(words) == 2 and not set(call.options) & {"-a", "--multiple"}:
        words, endings = words[:1], [*words[1:]]
    ending = endings[0].literal if endings else ""
    named = texts_of(words)
    if named is None or ending is None:
        return ()
    return tuple(shared.value(one, call.name, ending) for one in named)


_KINDS: dict[str, Callable[[Call, Paths, Shared], Paths]] = {
    "input": _passed,
    "name": _name,
    "find": _find,
    "ls": _ls,
    "grep": _grep,
    "git": _git,
    "words": _said,
    "format": _formatted,
    "date": _date,
    "here": _here,
    "temporary": _made,
    "xargs": _started,
    "table": _table,
    "column": _column,
    "trim": _trimmed,
    "respace": _respaced,
    "program": _program,
    "part": _part,
}
