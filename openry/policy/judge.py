"""Judging a whole line: every simple command of it, by one policy."""

# ruff: noqa: PTH110, PTH208
# Paths are compared as text here, many for each command.

from __future__ import annotations

import os
import re

from openry.policy.calls import Call, Place, Touched
from openry.policy.grammar import read_script
from openry.policy.moves import places
from openry.policy.numbers import POSITIONAL
from openry.policy.patterns import resolve
from openry.policy.profiles import Profile, profile_of
from openry.policy.programs import read_call
from openry.policy.rules import Rule
from openry.policy.script import Redirect, Script, Simple
from openry.policy.touching import Touching
from openry.policy.tracing import WIDER, Tracing
from openry.policy.values import Decision, Part
from openry.policy.words import DEEP, ONE, STAR, UNKNOWN, Opaque, Word, marked

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from openry.policy.policy import Policy

ALLOW, CONFIRM, DENY = Decision.ALLOW, Decision.CONFIRM, Decision.DENY
_ANY_NAME = frozenset((STAR, ONE))
#: Commands that run a text in the shell that is judged.
_IN_THIS_SHELL = frozenset(("eval", "trap", "let", "mapfile", "source"))
_DEEPEST = 8
#: A path that stays one word, the same, where a variable gives it.
_PLAIN_PATH = re.compile(r"/[^\s*?\[\]~\\]*")


class Judge(Touching):
    """Judges for one policy; holds what was found on the way."""

    def __init__(self, policy: Policy, place: Place) -> None:
        super().__init__(policy, place)
        self.functions: frozenset[str] = frozenset()
        self.tainted: frozenset[str] = frozenset()
        self.environment: Mapping[str, str] | None = None
        self.names: dict[str, str] = {}
        self.widest = ""  #: the setting of `shopt` with which patterns find most
        self.dashes: dict[str, bool] = {}
        self.seen: dict[tuple[object, ...], list[Part]] = {}

    def text(
        self, text: str, depth: int = 0, arguments: Sequence[str] | None = (), *, here: bool = False
    ) -> None:
        """Judge what a shell does with `text`.

        Args:
            arguments: What `$1` and its like may be; None where that is not known.
            here: It is the same shell that judged the line, with the variables of that.
        """
        outer, seen = self.tracing, self.seen
        for rule in self.policy.of_texts:
            if re.search(rule.regex, text):
                self.add((text,), DENY, rule.shown, rule.message or "a pattern denies it")
        try:
            if depth > _DEEPEST:
                raise Opaque("shells in shells, too deep")
            tainted = self.tainted | {POSITIONAL} if depth else self.tainted
            script = read_script(
                text,
                tainted,
                free_arithmetic=self.policy.frees_arithmetic,
                environment=None if depth else self.environment,
                folders={} if depth else _folders(self.place),
                values=outer.values if here else {},
            )
        except Opaque as error:
            self.add((text,), self.policy.opaque, "opaque", f"cannot be analysed: {error}")
            return
        except RecursionError:
            self.add((text[:80],), self.policy.opaque, "opaque", "cannot be analysed: too deep")
            return
        self.functions |= script.functions
        self.tainted |= script.tainted
        for name in sorted(script.functions):
            self._function(name)
        self.tracing = self._tracing(script, 0 if here else depth, arguments)
        self.seen = {}  # the same words may mean another file in another text
        self.links |= any(
            word.text == "ln" for simple in script.commands for word in simple.words[:3]
        )
        for simple in script.commands:
            if any(word.text == "shopt" for word in simple.words[:3]):
                self.widest = max(self.widest, *(word.text for word in simple.words), key=_width)
        self.tracing.wide = WIDER.get(self.widest)
        still = self.policy.write == ()
        where = places(script, self.place, self.tracing, still=still)
        for simple, cwds in zip(script.commands, where, strict=True):
            self.place = self.place._replace(cwds=cwds, texts=self.tracing.texts)
            self.tracing.here = cwds
            self.simple(simple, depth)
        self.tracing, self.seen = outer, seen

    def _tracing(self, script: Script, depth: int, arguments: Sequence[str] | None) -> Tracing:
        given = [] if arguments is None else list(arguments)
        known = arguments is not None
        for word in script.arguments(self.functions):
            texts = word.paths if UNKNOWN in word.text else (word.text,)
            given += texts
            known = known and bool(texts)
        temporary = (self.environment or {}).get("TMPDIR", "/tmp")  # noqa: S108
        folders = {"HOME": self.place.home, "TMPDIR": temporary}
        tracing = Tracing(
            script.values,
            given if known else None,
            None if depth else self.environment,
            {} if depth else folders,
        )
        tracing.path = self.place.path
        return tracing

    def simple(self, simple: Simple, depth: int = 0) -> None:
        for name, word in simple.assigns:
            self.variable(name, word.literal)
        for redirect in simple.redirects:
            self.redirect(redirect)
        if not simple.words:
            return
        key = (simple.words, simple.input, simple.redirects, self.place.cwds)
        if key not in self.seen:  # pipelines often say the same words again
            before = len(self.parts)
            self.argv(simple.words, depth, simple.input, _fed(simple))
            self.seen[key] = self.parts[before:]
        else:
            self.parts += self.seen[key]

    def argv(
        self,
        argv: tuple[Word, ...],
        depth: int = 0,
        given: tuple[str, ...] = (),
        fed: Redirect | None = None,
    ) -> None:
        """Judge one command and those it starts.

        Args:
            given: What the lines of its standard input may be, see `Simple.input`.
            fed: Where its standard input comes from; `|` is a pipe.
        """
        argv = tuple(
            self._looked_up(word) if word.paths or word.text[:1] in _ANY_NAME else word
            for word in argv
        )
        said = tuple(word.shown for word in argv)
        first = argv[0].literal
        if first is not None and first in self.functions:
            self.add(said, ALLOW, "function", "a function of this line; its commands are judged")
            return
        try:
            call = read_call(argv, self.place, self.names, given)
        except Opaque as error:
            self.add(said, self.policy.opaque, "opaque", f"cannot be analysed: {error}")
            return
        if call.fed and fed is not None:
            call = _with_text(call, fed)
        if fed is not None and fed.op in ("<", "<>"):
            call = call._replace(files=(*call.files, Touched("read", fed.target)))
        texts = self.tracing.texts(call.read) if call.read else ()
        if texts is None:
            call = call._replace(blind=f"what `{call.file}` runs is known only at run time")
        found = self.tracing.texts(call.text) if call.text else None
        if found and not any(map(marked, found)):
            call = call._replace(opaque="", scripts=(*call.scripts, *found))
        self._call(call, said)
        if depth >= _DEEPEST:
            self.add(said, self.policy.opaque, "opaque", "commands in commands, too deep")
            return
        outer = self.place
        if call.below:
            self.place = outer._replace(cwds=self._below(call.below))
        for inner in call.inner:
            hands_on = call.profile.runs != "xargs"
            self.argv(inner, depth + 1, given if hands_on else (), fed if hands_on else None)
        for text in (*call.scripts, *(texts or ())):
            same = call.profile.name in _IN_THIS_SHELL
            self.text(text, depth + 1, self._arguments(call), here=same)
        self.place = outer

    def _looked_up(self, word: Word) -> Word:
        """`word` with what its values say of its beginning."""
        texts = self.tracing.texts(word)
        if texts is None or any(text[:1] in ("-", "+", DEEP) for text in texts):
            return word
        matches = any(text[:1] in _ANY_NAME for text in texts)
        return word._replace(operand=not matches or self._no_dashes())

    def _no_dashes(self) -> bool:
        """Whether no file that a pattern finds here begins like an option, nor can be made."""
        if self.policy.write != ():
            return False
        for cwd in self.place.cwds:
            if cwd not in self.dashes:
                self.dashes[cwd] = not cwd or _any_dash(cwd)
        return not any(self.dashes[cwd] for cwd in self.place.cwds)

    def _below(self, folders: tuple[str, ...]) -> tuple[str, ...]:
        """Where `find -execdir` may be; an empty one is not known."""
        texts = self.tracing.texts(Word(UNKNOWN, paths=folders)) or ("",)
        place = self.place
        found = [resolve(text, cwd, place.home) or "" for text in texts for cwd in place.cwds]
        return tuple(dict.fromkeys(found))

    def _arguments(self, call: Call) -> Sequence[str] | None:
        """What a shell that is started gives its text as `$0`, `$1` and so on."""
        if call.profile.runs != "shell":
            return None
        texts = [self.tracing.texts(word) for word in call.operands]
        return None if None in texts else [one for some in texts for one in some or ()]

    def capability(
        self, name: str, reads: Sequence[str], writes: Sequence[str], urls: Sequence[str]
    ) -> None:
        """Judge a call of a capability by its name and by what its arguments name."""
        said, argv = (name,), tuple(Word(word) for word in (name, *reads, *writes, *urls))
        files = [Touched("remove", Word(path)) for path in writes]
        files += [Touched("read", Word(path)) for path in reads if path not in writes]
        addresses = tuple(Word(url) for url in urls)
        call = Call(name, name, argv, Profile(), files=tuple(files), urls=addresses)
        self.add(said, ALLOW, "capability", "a capability of this step")
        for rule in self.policy.rules_for(call):
            named = rule.decision is not ALLOW and rule.names(call, self.place)
            if named and rule.touches(call, self.place):
                reason = rule.message or f"`{name}` is not free here"
                self.add(said, rule.decision, rule.shown, reason, rule.instead)
        for touched in files:
            self.file(touched, said)
        for word in addresses:
            self.address(word, said)

    # --- one call -----------------------------------------------------------------------------

    def _call(self, call: Call, said: tuple[str, ...]) -> None:
        allowing = self._rule(call, said)
        policy = self.policy
        for name in call.sets:
            self.variable(name, None)
        self.tainted |= set(call.sets)
        naming = [rule for rule in allowing if rule.decision is not DENY]
        always = call.profile.always
        if always and not naming:
            self.risk(said, "profile", always)
        for option, why in call.hazards:
            if not any(rule.frees(call, option) for rule in naming):
                self.risk(said, "profile", why)
        unclear = call.opaque or call.unclear
        if unclear and not any(rule.runs for rule in naming):
            self.add(said, policy.opaque, "opaque", f"cannot be analysed: {unclear}")
        if call.blind:
            self.add(said, policy.opaque, "opaque", f"cannot be analysed: {call.blind}")
        for touched in call.files:
            self.file(touched, said)
        for word in call.urls:
            self.address(word, said)

    def _rule(self, call: Call, said: tuple[str, ...]) -> list[Rule]:
        """Judge by the rules. Gives those that allow the call, perhaps after a question."""
        policy, place = self.policy, self.place
        speaking = [rule for rule in policy.rules_for(call) if rule.names(call, place)]
        denying = [r for r in speaking if r.decision is DENY and r.touches(call, place)]
        if denying:
            rule = denying[0]
            reason = rule.message or f"`{rule.program}` is denied here"
            self.add(said, DENY, rule.shown, reason, rule.instead)
            return []
        asking = [r for r in speaking if r.decision is CONFIRM and r.touches(call, place)]
        covering = [r for r in speaking if r.decision is not DENY and r.covers(call, place)]
        allowing = [rule for rule in covering if rule.decision is ALLOW]
        if asking and (allowing or asking[0] in covering or policy.default is not DENY):
            rule = asking[0]
            reason = rule.message or f"`{rule.program}` needs a person's yes"
            self.add(said, CONFIRM, rule.shown, reason, rule.instead)
        elif allowing:
            self.add(said, ALLOW, allowing[0].shown, "a rule allows it")
        elif call.profile.harmless:
            self.add(said, ALLOW, "shell", "it does nothing outside the shell")
        else:
            self._without_rule(call, said, speaking)
        return covering

    def _without_rule(self, call: Call, said: tuple[str, ...], speaking: list[Rule]) -> None:
        policy = self.policy
        if not call.name and policy.default is not DENY:
            reason = f"`{call.file}` lies in no trusted folder, so what it does is not known"
            self.add(said, policy.opaque, "opaque", reason)
        elif policy.default is ALLOW:
            self.add(said, ALLOW, "default", "allowed by default")
        elif speaking:
            reason = f"no rule allows this use of `{said[0]}`"
            allowed = ", ".join(
                f"`{rule.described}`" for rule in speaking if rule.decision is ALLOW
            )
            self.add(said, policy.default, "default", reason, allowed)
        else:
            reason = f"no rule allows `{said[0]}`"
            self.add(said, policy.default, "default", reason, policy.offered)

    def _function(self, name: str) -> None:
        known = profile_of(name).known or any(rule.program == name for rule in self.policy.rules)
        folders = [one for one in self.place.path.split(":") if one.startswith("/")]
        if known or "/" in name or any(os.path.exists(f"{one}/{name}") for one in folders):
            reason = f"a function named `{name}` would run instead of the program"
            self.risk((f"{name}()",), "functions", reason, "give it another name")


def _width(setting: str) -> int:
    return [*WIDER].index(setting) if setting in WIDER else -1


def _fed(simple: Simple) -> Redirect | None:
    """Where the standard input of a command comes from, if the line says so."""
    for redirect in reversed(simple.redirects):
        if redirect.op in ("<", "<<", "<<<", "<>", "<&"):
            return redirect
    return Redirect("|", Word(UNKNOWN, paths=simple.input)) if simple.piped else None


def _with_text(call: Call, fed: Redirect) -> Call:
    """`call` of a shell that reads its text from `fed`."""
    if fed.op in ("<", "<>") and not fed.target.text.startswith("/dev/"):
        return call._replace(script=fed.target)
    word = fed.target
    if fed.op == "<<<" and UNKNOWN not in word.text:
        word = Word(UNKNOWN, paths=(word.text,))
    elif word.text.startswith("/dev/fd/"):
        word = Word(UNKNOWN, paths=tuple(one.removeprefix(word.text) for one in word.paths))
    return call._replace(read=word, opaque="")


def _any_dash(folder: str) -> bool:
    try:
        return any(name[:1] in ("-", "+") for name in os.listdir(folder))
    except FileNotFoundError:
        return False
    except OSError:
        return True


def _folders(place: Place) -> dict[str, str]:
    """What the shell's own folders are when it begins; not those that would be split or matched."""
    found = {"HOME": place.home, "PWD": place.cwd}
    return {name: path for name, path in found.items() if _PLAIN_PATH.fullmatch(path)}
