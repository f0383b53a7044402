"""Rules: which calls of a program they speak of."""

from __future__ import annotations

import re

from openry.models.value import value
from openry.policy.calls import Call, Place
from openry.policy.patterns import address_fits, path_pattern, path_patterns, read_address, resolve
from openry.policy.profiles import canonical
from openry.policy.values import Decision
from openry.policy.words import Word, marked


@value
class Rule:
    """One line of `commands`. What is empty does not narrow it.

    Attributes:
        program: A program's name, or a path pattern when it holds a slash.
        sub: Subcommands, each as its words; `not_sub` means every other.
        runs: What the program runs or loads by its options is allowed too.
    """

    decision: Decision
    program: str
    sub: tuple[tuple[str, ...], ...] = ()
    not_sub: tuple[tuple[str, ...], ...] = ()
    script: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    urls: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    runs: bool = False
    regex: str = ""
    message: str = ""
    instead: str = ""

    @property
    def shown(self) -> str:
        subs = "|".join(" ".join(words) for words in self.sub)
        return f"{self.decision.word} {self.program}{f' {subs}' if subs else ''}"

    @property
    def described(self) -> str:
        """What it allows, in the words of whoever writes a command."""
        subs = "|".join(" ".join(words) for words in self.sub)
        more = [subs, " ".join(self.options), *self.script, *self.paths, *self.urls]
        return " ".join((self.program, *(one for one in more if one)))

    def names(self, call: Call, place: Place) -> bool:
        """Whether it speaks of this program at all."""
        if "/" in self.program:
            return _program_path(self, call, place)
        if not call.name:
            return False
        if self.program in (call.name, "*"):
            return True
        return self.decision is not Decision.ALLOW and canonical(self.program) == canonical(
            call.name
        )

    def covers(self, call: Call, place: Place) -> bool:
        """Whether the whole of a call it names is what the rule describes: then it allows it."""
        return (
            (not self.sub or any(_is_sub(call, words) for words in self.sub))
            and not any(_may_be_sub(call, words) for words in self.not_sub)
            and (not self.options or set(call.options) <= set(self.options))
            and (not self.regex or _text_fits(self, call))
            and (not self.script or _script_in(self, call, place))
            and (not self.paths or _paths_in(self, call, place))
            and (not self.urls or _urls_in(self, call))
        )

    def touches(self, call: Call, place: Place) -> bool:
        """Whether some of a call it names may be what the rule describes: then it forbids it."""
        return (
            (not self.sub or any(_may_be_sub(call, words) for words in self.sub))
            and not any(_is_sub(call, words) for words in self.not_sub)
            and (not self.options or bool(call.unclear) or _uses_option(self, call))
            and (not self.regex or bool(re.search(self.regex, _text(call))))
            and (not self.script or _script_meets(self, call, place))
            and (not self.paths or _paths_meet(self, call, place))
            and (not self.urls or _urls_meet(self, call))
        )

    def frees(self, call: Call, option: str) -> bool:
        """Whether it names an option that would otherwise be denied for what it runs."""
        return self.runs or option in self.options


def _text(call: Call) -> str:
    return " ".join(word.shown for word in call.argv)


def _text_fits(rule: Rule, call: Call) -> bool:
    known = all(word.literal is not None for word in call.argv)
    return known and re.search(rule.regex, _text(call)) is not None


def _program_path(rule: Rule, call: Call, place: Place) -> bool:
    """A program named by its file. What lies in trusted folders has a name instead."""
    if "/" not in call.file or (call.name and rule.decision is Decision.ALLOW):
        return False
    found = resolve(call.file, place.cwd, place.home)
    pattern = path_pattern(rule.program, place.workspace, place.home)
    return found is not None and pattern.contains(found)


def _words(call: Call) -> tuple[Word, ...]:
    return (*call.sub, *call.operands)


def _is_sub(call: Call, wanted: tuple[str, ...]) -> bool:
    words = _words(call)[: len(wanted)]
    return [word.literal for word in words] == list(wanted)


def _may_be_sub(call: Call, wanted: tuple[str, ...]) -> bool:
    """Also when words are not known, or options may stand between them."""
    words = _words(call)
    if call.unclear or any(word.splits for word in words[: len(wanted)]):
        return True
    pairs = zip(words, wanted, strict=False)
    enough = len(words) >= len(wanted)
    return enough and all(marked(word.text) or word.text == one for word, one in pairs)


def _uses_option(rule: Rule, call: Call) -> bool:
    return any(
        option in rule.options
        or (
            option.startswith("--")
            and len(option) > 2
            and any(one.startswith(option) for one in rule.options)
        )
        for option in call.options
    )


def _named_paths(call: Call) -> list[Word]:
    named = {touched.word for touched in call.files}
    return [*named, *(word for word in call.operands if word not in named)]


def _paths_in(rule: Rule, call: Call, place: Place) -> bool:
    patterns = path_patterns(rule.paths, place.workspace, place.home)
    below = any(touched.how == "remove" for touched in call.files)
    return not call.unclear and all(
        found is not None and any(pattern.contains(found, below=below) for pattern in patterns)
        for word in _named_paths(call)
        for found in _resolved(word, place)
    )


def _paths_meet(rule: Rule, call: Call, place: Place) -> bool:
    patterns = path_patterns(rule.paths, place.workspace, place.home)
    tree = {touched.word for touched in call.files if touched.how == "remove"}
    return any(
        found is None or any(pattern.meets(found, tree=word in tree) for pattern in patterns)
        for word in _named_paths(call)
        for found in _resolved(word, place)
    )


def _resolved(word: Word, place: Place) -> list[str | None]:
    """Every path that `word` may name; None among them where that cannot be known."""
    texts = place.texts(word)
    if texts is None:
        return [None]
    return [resolve(text, cwd, place.home) for text in texts if text for cwd in place.cwds]


def _script_in(rule: Rule, call: Call, place: Place) -> bool:
    if call.script is None or call.script.splits:
        return False
    return all(
        (found := resolve(call.script.text, cwd, place.home)) is not None
        and any(
            path_pattern(text, place.workspace, place.home).contains(found) for text in rule.script
        )
        for cwd in place.cwds
    )


def _script_meets(rule: Rule, call: Call, place: Place) -> bool:
    if call.script is None:
        return False
    found = [resolve(call.script.text, cwd, place.home) for cwd in place.cwds]
    patterns = path_patterns(rule.script, place.workspace, place.home)
    return any(one is None or any(each.meets(one) for each in patterns) for one in found)


def _urls_in(rule: Rule, call: Call) -> bool:
    addresses = [read_address(word.text) for word in call.urls if not word.splits]
    return len(addresses) == len(call.urls) and all(
        address is not None and any(address_fits(address, one) for one in rule.urls)
        for address in addresses
    )


def _urls_meet(rule: Rule, call: Call) -> bool:
    addresses = [read_address(word.text) for word in call.urls]
    return any(
        address is None or any(address_fits(address, one) for one in rule.urls)
        for address in addresses
    )
