"""Judging what a command touches: files, addresses and variables."""

# ruff: noqa: PTH114
# Paths are compared as text here, many for each command.

from __future__ import annotations

import os
from fnmatch import fnmatchcase

from openry.policy.calls import Place, Touched
from openry.policy.patterns import path_patterns, read_address, resolve
from openry.policy.profiles import is_loaded
from openry.policy.script import Redirect
from openry.policy.tracing import Tracing
from openry.policy.values import Decision, Part
from openry.policy.words import DEEP, STAR, UNKNOWN, Word, marked, shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from openry.policy.policy import Policy

ALLOW, DENY = Decision.ALLOW, Decision.DENY
_SYSTEM_READ = ("/usr/", "/bin/", "/sbin/", "/lib/", "/lib64/", "/opt/", "/nix/")
_DEVICES = frozenset(
    f"/dev/{name}" for name in "null stdout stderr stdin zero tty urandom random full".split()
)
_HARMLESS_PAGERS = frozenset(("cat", "", "/bin/cat"))
_KNOWN_PATHS = (
    'the file\'s name itself, a pattern (`for f in *.txt; do … "$f"`), or what `find` or `ls`'
    " names (`find . -name '*.txt' | xargs …`)"
)


class Touching:
    """Judges, by one policy, what is touched from one place; holds what was said of it."""

    def __init__(self, policy: Policy, place: Place) -> None:
        self.policy = policy
        self.place = place
        self.tracing = Tracing({})
        self.reals: dict[str, str] = {}
        self.are_links: dict[str, bool] = {}
        self.links = False  #: the line makes links
        below = tuple(f"{text}/**" for text in policy.protect)
        self.protected = tuple(
            zip(
                policy.protect,
                path_patterns(policy.protect, place.workspace, place.home),
                path_patterns(below, place.workspace, place.home),
                strict=True,
            )
        )
        self.parts: list[Part] = []
        self.reads: dict[str, None] = {}
        self.writes: dict[str, None] = {}
        self.hosts: dict[str, None] = {}

    def redirect(self, redirect: Redirect) -> None:
        op, word = redirect.op, redirect.target
        if op in ("<<", "<<<"):
            return
        if (
            op in (">&", "<&")
            and word.literal is not None
            and word.literal.strip("0123456789-") == ""
        ):
            return
        said = (op, word.shown)
        if word.text.startswith(("/dev/tcp/", "/dev/udp/")):
            _, _, _, host, port = (*word.text.split("/"), "", "")[:5]
            if self.policy.hosts is None:
                self.risk(said, "network", "it opens a connection to another machine")
            self._host(f"{host}:{port}", said)
            return
        how = ("read",) if op in ("<", "<&") else ("read", "write") if op == "<>" else ("write",)
        for one in how:
            self.file(Touched(one, word), said)

    def file(self, touched: Touched, said: tuple[str, ...]) -> None:
        how, word = touched.how, touched.word
        texts = self.tracing.texts(word)
        if texts is None:
            self._unknown_path(how, word, said)
            return
        if how == "write" and len(texts) > 1:  # with an empty variable before a last `/`
            texts = tuple(text for text in texts if text != "/") or texts
        found = {
            resolve(text, cwd, self.place.home): None
            for text in texts
            if text  # an empty one names nothing
            for cwd in self.place.cwds
        }
        climbing = [text for text in texts if ".." in text.split("/")]
        link = f"{said[-1].rpartition('/')[0]}/" if said[0] == "ln" else ""
        if self.links and any(_climbs_late(text.removeprefix(link)) for text in climbing):
            found[None] = None  # it may pass a link that the line makes
        for text in climbing:
            found.update((_climbed(text, cwd, self.place.home), None) for cwd in self.place.cwds)
        for path in found:
            if path is None:
                self._unknown_path(how, word, said)
            else:
                self._path(how, path, said)

    def _unknown_path(self, how: str, word: Word, said: tuple[str, ...]) -> None:
        """A file that only the run will tell is outside of what the policy restricts."""
        if how == "any":
            return
        writing = how in ("write", "remove")
        folder, slash, _ = word.text.partition(UNKNOWN)[0].rpartition("/")
        if writing and slash:
            for cwd in self.place.cwds:
                known = resolve(f"{folder}/{STAR}{DEEP}", cwd, self.place.home)
                if known and self._protects(known, how, said):
                    return
        allowed, verb = (self.policy.write, "written") if writing else (self.policy.read, "read")
        place = self.place
        if (
            allowed is None
            or self.policy.opaque is ALLOW
            or any(
                one.parts == ("**",) for one in path_patterns(allowed, place.workspace, place.home)
            )
        ):
            return
        reason = (
            f"which file `{word.shown}` is, to be {verb}, is known only at run time, so it counts"
            " as outside"
        )
        rule = "files.write" if writing else "files.read"
        self.add(said, self.policy.opaque, rule, reason, _KNOWN_PATHS)

    def _path(self, how: str, path: str, said: tuple[str, ...]) -> None:
        if path in _DEVICES or path.startswith("/dev/fd/"):
            return
        writing = how in ("write", "remove")
        if how != "any":
            (self.writes if writing else self.reads)[shown(path)] = None
        real = self._real(path)
        every = (path,) if real == path else (path, real)
        policy, place = self.policy, self.place
        if how != "read" and any(self._protects(one, how, said) for one in every):
            return
        allowed = policy.write if writing else policy.read
        if allowed is None or how == "any":
            return
        for one in every:
            if not writing and one.startswith(_SYSTEM_READ):
                continue
            patterns = path_patterns(allowed, place.workspace, place.home)
            if not any(pattern.contains(one) for pattern in patterns):
                verb = "written" if writing else "read"
                where = ", ".join(f"`{text}`" for text in allowed) or "nothing"
                reason = f"`{shown(one)}` is outside what may be {verb}"
                self.add(said, DENY, f"files.{'write' if writing else 'read'}", reason, where)
                return

    def _protects(self, path: str, how: str, said: tuple[str, ...]) -> bool:
        """Whether `path` is, or may be, what nothing may write; then it is said."""
        # What `find` and the like name is taken for hidden where a word says so, or to remove it.
        seen = path.replace(f"/{DEEP}", f"/{STAR}{DEEP}")
        for text, itself, inside in self.protected:
            anywhere = text.startswith("**")
            tree = how == "remove" and not anywhere
            said_so = not path.endswith(DEEP) or tree
            met = (
                inside.meets(seen, tree=tree)
                or (said_so and itself.meets(path, tree=tree))
                or (how == "write" and inside.meets(f"{seen}/{STAR}"))  # copied into a folder
            )
            if met and (how != "any" or text.endswith(".openry")):
                self.add(said, DENY, "protect", f"`{text}` is protected")
                return True
        return False

    def _real(self, path: str) -> str:
        """`path` with links followed, as far as its names are known."""
        folder, _, name = path.rpartition("/")
        if marked(folder):
            return f"{self._real(folder)}/{name}"
        real = self.reals.get(folder)
        if real is None:
            real = self.reals[folder] = _realpath(folder or "/").rstrip("/")
        whole = f"{real}/{name}"
        if not marked(name) and self._is_link(whole):
            return _realpath(whole)
        return whole

    def _is_link(self, path: str) -> bool:
        if path not in self.are_links:
            self.are_links[path] = os.path.islink(path)
        return self.are_links[path]

    def address(self, word: Word, said: tuple[str, ...]) -> None:
        address = None if word.splits else read_address(word.text)
        if address is None:
            if self.policy.hosts is not None:
                reason = f"cannot be analysed: which host `{word.shown}` names"
                self.add(said, self.policy.opaque, "opaque", reason)
            return
        self._host(address.place, said)

    def _host(self, place: str, said: tuple[str, ...]) -> None:
        self.hosts[shown(place)] = None
        hosts = self.policy.hosts
        if hosts is None:
            return
        name = place.partition(":")[0]
        if place not in hosts and name not in hosts:
            allowed = ", ".join(f"`{one}`" for one in hosts) or "no host"
            self.add(
                said, DENY, "network.hosts", f"`{shown(place)}` is no host of this step", allowed
            )

    def variable(self, name: str, literal: str | None) -> None:
        if not is_loaded(name) or any(fnmatchcase(name, one) for one in self.policy.env):
            return
        if name.endswith("PAGER") and literal in _HARMLESS_PAGERS:
            return
        reason = f"programs load or run what `{name}` says"
        self.risk((f"{name}=",), "variables", reason, "name it in `env.pass`")

    def risk(self, argv: tuple[str, ...], rule: str, reason: str, instead: str = "") -> None:
        """What is denied although a rule may allow the program; free only where all is."""
        if self.policy.opaque is not ALLOW:
            self.add(argv, DENY, rule, reason, instead)

    def add(
        self, argv: tuple[str, ...], decision: Decision, rule: str, reason: str, instead: str = ""
    ) -> None:
        self.parts.append(Part(argv, decision, rule, reason, instead))


def _realpath(path: str) -> str:
    try:
        return os.path.realpath(path)
    except OSError:  # a link of another user's process: nor can the command follow it
        return path


def _climbs_late(text: str) -> bool:
    """Whether `..` stands behind a name."""
    parts = [part for part in text.split("/") if part not in ("", ".")]
    return ".." in parts[next((at for at, part in enumerate(parts) if part != ".."), 0) :]


def _climbed(text: str, cwd: str, home: str) -> str | None:
    """Where `text` leads for a program: `..` after a link is the folder above its target."""
    if not cwd or resolve(text, cwd, home) is None:
        return None
    if text == "~" or text.startswith("~/"):
        text = home + text[1:]
    head, up, rest = (
        f"{cwd}/{text}".rpartition("/..") if text[:1] != "/" else text.rpartition("/..")
    )
    if marked(head):
        return resolve(f"{head}{up}{rest}", cwd, home)
    return resolve(_realpath(head + up) + rest, cwd, home)
