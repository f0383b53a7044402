"""What holds of every policy and every command line."""

from __future__ import annotations

import random
import shlex

from hypothesis import given, settings
from hypothesis import strategies as st

from openry.policy import Decision, Policy, load_policy
from openry.policy.grammar import read_script
from openry.policy.words import Opaque
from tests.property.shell_lines import line

PLACE = {"cwd": "/w", "workspace": "/w", "home": "/h", "path": "/usr/bin:/bin"}
PROGRAMS = ("git", "rm", "ls", "cat", "curl", "sort", "echo", "sed", "env", "timeout", "tool")
WORDS = (
    "-n",
    "-rf",
    "push",
    "status",
    "a.txt",
    "./build",
    "/etc/x",
    "*.txt",
    "-c",
    "x=1",
    "10",
    "ls",
)

programs = st.sampled_from(PROGRAMS)
words = st.one_of(st.sampled_from(WORDS), programs)
argvs = st.builds(lambda program, rest: [program, *rest], programs, st.lists(words, max_size=4))
rules = st.builds(
    lambda kind, program, more: {kind: program, **more},
    st.sampled_from(["allow", "confirm", "deny"]),
    programs,
    st.sampled_from(
        [{}, {"sub": ["push"]}, {"sub": ["status"]}, {"options": ["-n"]}, {"paths": ["build/**"]},
         {"paths": ["**"]}]
    ),
)  # fmt: skip
maps = st.builds(
    lambda default, some: {"default": default, "commands": without_contradiction(some)},
    st.sampled_from(["allow", "confirm", "deny"]),
    st.lists(rules, max_size=6),
)


def without_contradiction(some: list[dict[str, object]]) -> list[dict[str, object]]:
    """The first rule of each kind of call: two that contradict are refused when loaded."""
    kept: dict[str, dict[str, object]] = {}
    for rule in some:
        kept.setdefault(
            str(sorted((("who", v) if k in KINDS else (k, v)) for k, v in rule.items())), rule
        )
    return list(kept.values())


KINDS = ("allow", "confirm", "deny")


@st.composite
def lines(draw: st.DrawFn) -> tuple[str, list[str]]:
    """A command line and the programs that it calls, whatever is wrapped round them."""
    argv = draw(argvs)
    text, called = shlex.join(argv), [argv[0]]
    for _ in range(draw(st.integers(0, 3))):
        other = draw(argvs)
        simple = shlex.join(other)
        shape = draw(st.sampled_from(SHAPES))
        text, called = shape.replace("A", simple, 1).replace("B", text, 1), [*called, other[0]]
    return text, called


SHAPES = (
    "A; B", "A && B", "A || B", "A | B", "A & B", "A\nB", "(A); B", "{ A; }; B", "if A; then B; fi",
    "while A; do B; done", "for i in 1 2; do A; done; B", "case x in y) A;; *) B;; esac",
    "! A; B", "time A; B", "A >/dev/null; B", "A 2>&1 | B", "true \"$(A)\"; B", "true `A`; B",
    "true ${x:-$(A)}; B", "true <(A); B", "B\ncat <<E\n$(A)\nE\n", "f1() { A; }; B",
)  # fmt: skip


@given(maps, rules, argvs)
def test_a_deny_rule_never_loosens(data: dict, rule: dict, argv: list[str]) -> None:
    """Adding a DENY rule leaves each decision as strict as it was, or stricter."""
    forbid = {("deny" if key in KINDS else key): item for key, item in rule.items()}
    same = without_contradiction([forbid, *data["commands"]])
    before = load_policy({**data, "commands": same[1:]})

    after = load_policy({**data, "commands": [*same[1:], forbid]})

    line = shlex.join(argv)
    assert after.decide(line, **PLACE).decision >= before.decide(line, **PLACE).decision


@given(maps, argvs, st.randoms())
def test_order_never_matters(data: dict, argv: list[str], random: object) -> None:
    """The same rules in another order decide the same."""
    turned = list(data["commands"])
    random.shuffle(turned)
    line = shlex.join(argv)

    one, other = load_policy(data), load_policy({**data, "commands": turned})

    assert one.decide(line, **PLACE).decision is other.decide(line, **PLACE).decision


@given(maps, maps, argvs)
def test_narrowing_never_widens(data: dict, parent: dict, argv: list[str]) -> None:
    """A step's policy under its parent is as strict as each of the two, or stricter."""
    line, above = shlex.join(argv), load_policy(parent)

    narrowed = load_policy(data, parent=above).decide(line, **PLACE).decision

    assert narrowed >= above.decide(line, **PLACE).decision
    assert narrowed >= load_policy(data).decide(line, **PLACE).decision


@given(maps, argvs, st.integers(0, 4), st.sampled_from(["''{}", "'{}'", '"{}"', "\\{}"]))
def test_quoting_never_frees(data: dict, argv: list[str], place: int, form: str) -> None:
    """Writing a word in another way never makes a denied command allowed."""
    policy = load_policy(data)
    plain = policy.decide(" ".join(argv), **PLACE).decision
    quoted = list(argv)
    at = place % len(argv)
    if not set(argv[at]) & set("*?"):
        quoted[at] = form.format(argv[at])

    assert policy.decide(" ".join(quoted), **PLACE).decision is plain


@settings(max_examples=400)
@given(lines())
def test_every_simple_command_is_judged(made: tuple[str, list[str]]) -> None:
    """Whatever stands round a command, it is among those that are judged."""
    text, called = made
    try:
        found = [simple.words[0].text for simple in read_script(text).commands if simple.words]
    except Opaque:
        return

    for program in called:
        assert program in found, text
    for program in set(called):
        policy = load_policy({"default": "allow", "commands": [{"deny": program}]})
        assert policy.decide(text, **PLACE).decision is Decision.DENY


@given(maps, rules, st.lists(st.sampled_from(["a.txt", "build/x", "/etc/x", "../y"]), max_size=3))
def test_a_deny_rule_never_loosens_a_capability(data: dict, rule: dict, paths: list[str]) -> None:
    """What holds of commands holds of capabilities; a child is no wider than its parent."""
    forbid = {("deny" if key in KINDS else key): item for key, item in rule.items()}
    same = without_contradiction([forbid, *data["commands"]])
    before = load_policy({**data, "commands": same[1:]})
    after = load_policy({**data, "commands": [*same[1:], forbid]})
    under = load_policy({"files": {"write": ["build/**"]}}, parent=before)
    place = {"cwd": "/w", "workspace": "/w", "home": "/h", "writes": paths}

    for name in PROGRAMS:
        decided = [one.decide_capability(name, **place).decision for one in (before, after, under)]
        assert decided[1] >= decided[0] <= decided[2]


@given(st.integers())
def test_any_line_of_shapes_gets_a_verdict(seed: int) -> None:
    """Constructs in constructs, with slips in them, never break the reader."""
    text = line(random.Random(seed))

    assert load_policy("moderate").decide(text, **PLACE, inherited={}).reason


@given(st.text(alphabet="ab1 \n\t'\"$`(){}[]<>|&;\\#!*?~=-,:@%/", max_size=40))
def test_any_text_gets_a_verdict(text: str) -> None:
    """No text makes deciding fail, and it is the same each time."""
    policy = load_policy("strict")

    assert policy.decide(text, **PLACE) == policy.decide(text, **PLACE)


def test_a_policy_has_no_way_to_allow_what_is_opaque() -> None:
    """Only `permissive`, which restricts nothing else, lets through what cannot be analysed."""
    assert load_policy("strict").opaque is load_policy("moderate").opaque is Decision.DENY
    assert isinstance(load_policy("permissive"), Policy)
