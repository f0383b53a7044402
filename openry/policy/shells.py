"""Programs that run a text: shells, interpreters, `eval` and its like, awk and sed."""

from __future__ import annotations

from openry.policy.arguments import Arguments
from openry.policy.inline import awk_runs, sed_runs
from openry.policy.tracing import WIDER
from openry.policy.words import UNKNOWN, Word

_STDIN = frozenset(("/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"))
#: Settings of `set -o` after which a line still means what it says, and their letters.
_SETTINGS = frozenset(
    "allexport emacs errexit errtrace functrace hashall ignoreeof interactive-comments monitor"
    " noclobber noexec noglob nolog notify nounset onecmd pipefail privileged verbose vi"
    " xtrace".split()
)
_LETTERS = frozenset("abefhmnptuvxCETo")
#: The same of `shopt`. What some of them make of patterns is known where those are read.
_SHOPTS = frozenset(
    "checkhash checkwinsize dotglob expand_aliases extglob failglob globasciiranges globstar"
    " huponexit inherit_errexit interactive_comments lastpipe nocaseglob nocasematch nullglob"
    " progcomp shift_verbose xpg_echo".split()
)


def read_later(args: Arguments) -> None:
    """`trap TEXT SIGNALS`: the text is run when one comes. `eval WORDS`: at once."""
    args.take_options()
    if args.name == "eval" and all(word.literal is not None for word in args.operands):
        args.scripts.append(" ".join(word.text for word in args.operands))
    elif args.name == "eval":
        args.opaque = "`eval` of a text known only at run time"
    elif len(args.operands) > 1 and args.operands[0].text not in ("-", ""):
        args.text_of(args.operands[0])
    args.operands = []


def read_evaluated(args: Arguments) -> None:
    """`let TEXT`: arithmetic, and a command in it is run."""
    args.operands, args.rest = args.rest, []
    for word in args.operands:
        if set(word.text) & set("$`"):
            args.text_of(word._replace(text=f"(({word.text}))"))


def read_set(args: Arguments) -> None:
    """`set`: letters and names of settings, then `$1` and its like."""
    words, args.rest = args.rest, []
    while words and (words[0].literal is None or words[0].text[:1] in ("-", "+")):
        word = words.pop(0)
        if word.text in ("-", "--"):
            break
        if word.literal is None and not word.may_be_option:
            words.insert(0, word)
            break
        letters = set(word.text[1:])
        names = [words.pop(0).literal for sign in word.text[1:] if sign == "o" and words]
        if word.literal is None or letters - _LETTERS or set(names) - _SETTINGS:
            args.blind = f"`set {word.shown}` changes how the line is read"
    args.operands = words


def read_shopt(args: Arguments) -> None:
    args.take_options()
    known = _SETTINGS if "-o" in args.options else _SHOPTS
    turning = bool({"-s", "-u"} & set(args.options))
    if args.unclear or (turning and {word.literal for word in args.operands} - known):
        args.blind = "`shopt` changes how the line is read"
    args.operands = []


def read_shell(args: Arguments) -> None:
    wide = [one for one in args.options if one not in ("-c", "-e", "-u", "-x", "-f", "-o")]
    named = {one.literal for one in args.value_of("-o")} - _SETTINGS
    named |= {one.literal for one in args.value_of("-O", "+O")} - (_SHOPTS - set(WIDER))
    if named:
        args.blind = f"`{args.name} -o` changes how the text is read"
    if "-c" in args.options:
        args.text_of(args.operands[0] if args.operands else Word(UNKNOWN))
        if wide:
            args.opaque = f"`{args.name} {wide[0]}` changes how the text is read"
    elif args.operands and "-s" not in args.options:
        _file_run(args, args.operands[0])
    else:
        args.opaque = f"`{args.name}` runs what it reads from standard input"
        args.fed = True
    args.operands = args.operands[1:]


def read_source(args: Arguments) -> None:
    """`source FILE`."""
    args.take_options()
    if args.operands:
        _file_run(args, args.operands[0])
    args.operands = []


def _file_run(args: Arguments, word: Word) -> None:
    """A file whose text the shell runs; of `<(…)` it is what the command prints."""
    if word.text in _STDIN:
        args.opaque, args.fed = f"`{args.name}` runs what it reads from standard input", True
    elif not word.text.startswith("/dev/fd/"):
        args.script = word
    elif not word.paths:
        args.blind = f"`{args.name}` runs what a command prints"
    else:
        names = tuple(one.removeprefix(word.text) for one in word.paths)
        args.read = Word(UNKNOWN, paths=names)


def read_interpreter(args: Arguments) -> None:
    profile = args.profile
    used = [one for one in args.options if one in profile.code]
    if used:
        args.hazards.append((used[0], f"`{args.name} {used[0]}` runs code that is not analysed"))
    elif {"-m"} & set(args.options):
        pass
    elif args.operands and not _is_stream(args.operands[0]):
        args.script = args.operands[0]
    elif not {"--version", "-V", "-v", "--help", "-h"} & set(args.options):
        args.opaque = f"`{args.name}` runs what it reads from standard input"
    args.operands = args.operands[1:]


def _is_stream(word: Word) -> bool:
    """Whether it names no file: the standard input, `<(…)`, or another descriptor."""
    return word.text == "-" or word.text in _STDIN or word.text.startswith("/dev/fd/")


def read_program(args: Arguments) -> None:
    inline = args.value_of("-e", "--expression") if args.profile.program == "sed" else []
    if not inline and not {"-f", "--file"} & set(args.options):
        inline = args.operands[:1]
    check = sed_runs if args.profile.program == "sed" else awk_runs
    texts = [text for word in inline if (text := word.literal) is not None]
    if len(texts) < len(inline):
        args.opaque = f"a program of `{args.name}` known only at run time"
    elif inline and (found := check("\n".join(texts))):
        args.hazards.append(("program", f"{found} in a program of `{args.name}`"))
