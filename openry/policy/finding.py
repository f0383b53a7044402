"""`find`: what it starts, writes and removes."""

from __future__ import annotations

import re
from itertools import pairwise

from openry.policy.arguments import Arguments
from openry.policy.calls import Touched
from openry.policy.derived import found_below, parent, replaced
from openry.policy.words import DEEP, Word

#: Tests of `find` whose value is a file.
_COMPARED = re.compile(r"-(?:[ac]?newer|samefile|newer[aBcm][aBcm])")
#: What programs leave behind. `find -delete` by such a name spares every protected file.
_LEFTOVERS = re.compile(
    r"\*?\.(?:py[co]|te?mp|log|bak|old|orig|rej|sw[op]|o|obj|class|pid|cache|DS_Store)|\*~"
)


def read_find(args: Arguments) -> None:
    start = True
    roots: list[Word] = []
    words = args.rest
    args.rest = []
    place = 0
    while place < len(words):
        word = words[place]
        text = word.text
        unknown = word.literal is None and word.may_be_option and not start
        if unknown and not words[place - 1].text.startswith("-"):
            args.unclear = f"`{word.shown}` may become an action of `find`"
        if text.startswith(("-", "(", "!")) and text not in ("-L", "-H", "-P", "-"):
            start = False
        if text in ("-exec", "-execdir", "-ok", "-okdir"):
            end = next(
                (
                    at
                    for at in range(place + 1, len(words))
                    if words[at].text == ";"
                    or (words[at].text == "+" and words[at - 1].text == "{}")
                ),
                len(words),
            )
            below = found_below(roots or [Word(".")], words)
            if text.endswith("dir"):
                args.below = tuple(dict.fromkeys((*below, *map(parent, below))))
                below = (f"./{DEEP}",)
            command = [replaced(one, ["{}"], below, found=True) for one in words[place + 1 : end]]
            args.options.append(text)
            if command:
                args.inner.append(tuple(command))
            place = end
        elif text in ("-fprint", "-fprint0", "-fls", "-fprintf"):
            args.options.append(text)
            args.files += [Touched("write", one) for one in words[place + 1 : place + 2]]
            place += 1
        elif text == "-files0-from" or _COMPARED.fullmatch(text):
            args.files += [Touched("read", one) for one in words[place + 1 : place + 2]]
            if text == "-files0-from":
                args.listed(words[place + 1] if place + 1 < len(words) else Word("-"))
            args.options.append(text)
            place += 1
        elif text.startswith("-"):
            args.options.append(text)
        elif start:
            if word.may_be_option:
                args.unclear = f"`{word.shown}` may become an action of `find`; put `./` before it"
            roots.append(word)
        place += 1
    args.operands = roots or [Word(".")]
    if "-delete" in args.options:
        how = "write" if _spares_protected(words) else "remove"
        args.files += [Touched(how, root) for root in args.operands]


def _spares_protected(words: list[Word]) -> bool:
    """Whether `find` looks for what programs leave behind, and for nothing else."""
    names = [after.literal or "" for word, after in pairwise(words) if word.text == "-name"]
    turned = {word.text for word in words} & {"-o", "-or", "-not", "!", ",", "("}
    return len(names) == 1 and not turned and bool(_LEFTOVERS.fullmatch(names[0]))
