"""Words of a command line; what they cannot mean is one sentence of ours."""

from __future__ import annotations

import argparse
import re
from itertools import pairwise
from typing import NoReturn

from openry.errors import UsageError
from openry.texts import bracketed, did_you_mean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

_QUOTED = re.compile(r"'([^']*)'")


class Parser(argparse.ArgumentParser):
    """An `ArgumentParser` that raises instead of ending the process.

    A whole number is digits alone, and an option that wants a value takes no empty one.

    Raises:
        UsageError: The words cannot be taken; the sentence names the nearest option.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.register("type", int, _whole)
        self._words: Sequence[str] = ()

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        self._words = list(args or ())
        for word, after in pairwise([*self._words, None]):
            name, sign, text = str(word).partition("=")
            wants = getattr(self._option_string_actions.get(name), "nargs", 0) != 0
            if wants and (text if sign else after) == "":
                self.error(f"{name} is empty")
        return super().parse_known_args(args, namespace)

    def error(self, message: str) -> NoReturn:
        how = f"; see {self.prog} --help" if self.add_help else ""
        raise UsageError(f"{self._reworded(message)}{how}")

    def _reworded(self, message: str) -> str:
        """argparse's sentence as one of ours."""
        if found := re.match(r"unrecognized arguments: (\S+)", message):
            what = "unknown option" if found[1].startswith("-") else "too many words:"
            return f"{what} `{found[1]}`{self._meant(found[1])}"
        if found := re.match(
            r"argument (\S+): invalid choice: '([^']*)' \(choose from (.*)\)", message
        ):
            known = _QUOTED.sub(r"\1", found[3])
            hint = did_you_mean(found[2], _QUOTED.findall(found[3])) or f"there are {known}"
            if found[1].startswith("-"):
                return f"{found[1]} cannot be `{found[2]}` ({hint})"
            return f"there is no `{self.prog} {found[2]}` ({hint})"
        if found := re.match(r"argument (.+): invalid (\w+) value: '(.*)'", message):
            kind = {"int": "a whole number", "float": "a number"}.get(found[2], found[2])
            return f"{found[1]} must be {kind}, got `{found[3]}`"
        if found := re.match(r"argument (\S+): expected one argument", message):
            return f"{found[1]} needs a value{self._instead_of(found[1])}"
        if found := re.match(r"argument (\S+): not allowed with argument (\S+)", message):
            return f"{found[1]} and {found[2]} cannot go together"
        if found := re.match(r"argument (\S+): (?=must )", message):
            return f"{found[1]} {message[found.end() :]}"
        missing = message.removeprefix("the following arguments are required: ")
        if missing != message:
            return f"missing {self._forms() if missing in ('form', 'FORM') else missing}"
        return message

    def _forms(self) -> str:
        """The words of which one must come first."""
        groups = [one for one in self._actions if isinstance(one, argparse._SubParsersAction)]
        return f"one of {', '.join(name for one in groups for name in one.choices)}"

    def _instead_of(self, option: str) -> str:
        """What stands where a value should, when it looks like an option."""
        names = option.split("/")
        for word, after in pairwise(self._words):
            if word in names and after.startswith("-"):
                return f", and `{after}` is none"
        return ""

    def _meant(self, word: str) -> str:
        names = [name for action in self._actions for name in action.option_strings]
        return bracketed(did_you_mean(word.partition("=")[0], names))


def _whole(text: str) -> int:
    if not re.fullmatch(r"[-+]?[0-9]{1,18}", text):
        raise ValueError
    return int(text)
