"""Programs that start the command which follows: `env`, `timeout`, `xargs` and their like."""

from __future__ import annotations

import re

from openry.policy.arguments import Arguments
from openry.policy.derived import replaced
from openry.policy.profiles import Profile
from openry.policy.words import UNKNOWN, Word

_EVERYWHERE = frozenset(("--help", "--version", "-"))


def read_wrapper(args: Arguments) -> None:
    runs = args.profile.runs
    args.take_options(stop_at_operand=True)
    for option in args.options:
        if not _is_known(option, args.profile):
            args.blind = f"whether `{args.name} {option}` takes the next word is not known"
    for option, given in list(args.values):
        if runs == "env" and option in ("-S", "--split-string"):
            args.text_of(given)
    if runs == "env":
        _env(args)
    if args.operands and not args.rest:  # words after `--`
        args.rest = args.operands
    elif args.operands:
        args.opaque = "which words are the command is known only at run time"
    args.operands = []
    for _ in range(args.profile.skip):
        if args.rest and (args.rest[0].splits or args.rest[0].may_be_option):
            args.opaque = "which words are the command is known only at run time"
        args.rest = args.rest[1:]
    if runs == "command" and {"-v", "-V"} & set(args.options):
        return
    if args.rest:
        known = () if {"-a", "--arg-file"} & set(args.options) else args.given
        lines = tuple(one for one in known if one)
        added = Word(UNKNOWN, splits=True, paths=lines)
        more = (added,) if runs == "xargs" else ()
        rest = args.rest
        if runs == "xargs" and {"-I", "-i", "--replace"} & set(args.options):
            marks = [one.text for one in args.value_of("-I", "-i", "--replace")] or ["{}"]
            rest = [replaced(word, marks, lines) for word in rest]
            more = ()
        args.inner.append((*rest, *more))
    elif runs == "env" and not args.scripts:
        return
    args.rest = []


def _is_known(option: str, profile: Profile) -> bool:
    known = profile.taking | profile.optional | profile.attached | profile.flags | _EVERYWHERE
    if option in known:
        return True
    return len(option) > 3 and any(one.startswith(option) for one in known)


def _env(args: Arguments) -> None:
    """`env A=1 -S 'text' cmd`: assignments, then a command."""
    text_options = ("-S", "--split-string")
    for place, word in enumerate(args.argv[1:]):
        text = word.text
        if text in text_options and place + 2 < len(args.argv):
            args.text_of(args.argv[place + 2])
            args.rest, args.operands = [], []
            return
        if text.startswith(("-S", "--split-s")) or re.match(r"-[iv0]*S", text):
            args.text_of(Word(re.sub(r"^-[iv0]*S|^--split-\w*=?", "", text), word.splits))
            args.rest, args.operands = [], []
            return
        if not text.startswith("-"):
            break
    if not args.rest:
        args.rest, args.operands = args.operands, []
    while args.rest and (found := re.match(r"([A-Za-z_]\w*)=", args.rest[0].text)):
        args.sub.append(Word(found.group(1)))
        args.sets.append(found.group(1))
        args.rest.pop(0)
    if args.rest and UNKNOWN in args.rest[0].text:
        args.opaque = "which words are the command is known only at run time"
    args.sub = []
