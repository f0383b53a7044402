"""What surrounds a step's commands, by who wrote the workflow: each word only ever narrows."""

from __future__ import annotations

from dataclasses import replace

import pytest

from openry.config import load_config
from openry.forwarder.bounds import narrowed
from openry.models import SandboxSpec
from openry.orchestrator.course import Standing
from openry.orchestrator.loader import load
from openry.orchestrator.plan import Plan
from openry.orchestrator.routing import start
from openry.orchestrator.settings import sandbox_of
from openry.policy import load_policy


def standing(text, drafted=False):
    spec = load(text).required().workflow
    return Standing("i", Plan(None, {spec.name: spec}), "/w", drafted, {}, {}, start(spec))


@pytest.fixture
def config(tmp_path):
    return replace(load_config(tmp_path, env={}), sandbox="auto")


@pytest.fixture
def sandboxes(config):
    """The sandbox of each step of a workflow."""

    def of(text, **more):
        here = standing(text, **more)
        return [sandbox_of(here, step, config) for step in here.spec.sub_steps]

    return of


def under(policy, **spec):
    """A sandbox with the workspace `/w` to write, under a policy."""
    given = {"write": ("/w",)} | spec
    return narrowed(SandboxSpec("auto", **given), load_policy({"default": "allow", **policy}), "/w")


WIDE = """
name: x
sandbox: {backend: none, network: true, write: [/tmp], read: [/data]}
sub_steps:
  - {id: a, kind: shell, command: x}
  - {id: b, kind: shell, command: x, sandbox: {backend: auto, network: false, read: [/data/in]}}
"""


def test_a_step_narrows_what_its_workflow_says(sandboxes):
    """Each setting is the step's own, else the workflow's, else the configured one."""
    a, b = sandboxes(WIDE)
    assert (a.backend, a.network, a.write) == ("none", True, ("/w", "/tmp"))
    assert (b.backend, b.network) == ("auto", False)
    assert [set(one.read) - set(one.write) for one in (a, b)] == [{"/data"}, {"/data/in"}]
    (plain,) = sandboxes("{name: x, sub_steps: [{id: a, kind: shell, command: x}]}")
    assert (plain.backend, plain.write, plain.network, plain.hosts) == ("auto", ("/w",), False, ())


@pytest.mark.parametrize(
    ("workflow", "own", "said"),
    [
        ("{read: [/data]}", "{read: [/etc/x]}", "`sandbox.read` has `/etc/x`"),
        ("{write: [out]}", "{write: [/other]}", "`sandbox.write` has `/other`"),
        ("{write: [/data]}", "{write: [/database]}", "`sandbox.write` has `/database`"),
        ("bubblewrap", "none", "asks for no sandbox"),
    ],
)
def test_a_step_that_asks_for_more_than_its_workflow_runs_nothing(sandboxes, workflow, own, said):
    """The sentence names it; nothing is passed over."""
    (spec,) = sandboxes(
        f"{{name: x, sandbox: {workflow}, "
        f"sub_steps: [{{id: a, kind: shell, command: x, sandbox: {own}}}]}}"
    )
    assert said in spec.refused


@pytest.mark.parametrize(
    ("workflow", "own", "network", "hosts"),
    [
        ("false", "true", False, ()),
        ("true", "false", False, ()),
        ("[a.test, b.test:22]", "[b.test]", False, ()),
        ("[a.test, '*.c.test']", "[x.c.test:443, b.test]", False, ("x.c.test:443",)),
        ("true", "[a.test]", False, ("a.test",)),
        ("[a.test]", "true", False, ("a.test",)),
    ],
)
def test_a_step_reaches_no_host_that_its_workflow_does_not(
    sandboxes, workflow, own, network, hosts
):
    """Of two lists what both allow."""
    (spec,) = sandboxes(
        f"{{name: x, sandbox: {{network: {workflow}}}, "
        f"sub_steps: [{{id: a, kind: shell, command: x, sandbox: {{network: {own}}}}}]}}"
    )
    assert (spec.network, spec.hosts) == (network, hosts)


def test_a_policy_that_names_hosts_asks_for_them(sandboxes):
    """Where nothing else is said of the network; what is said is only narrowed."""
    asks = "command_policy: {default: allow, network: {hosts: [a.test, b.test], per_minute: 9}}"
    step = "sub_steps: [{id: a, kind: shell, command: x%s}]"
    (alone,) = sandboxes(f"{{name: x, {asks}, {step % ''}}}")
    (closed,) = sandboxes(f"{{name: x, sandbox: {{network: false}}, {asks}, {step % ''}}}")
    more = ", command_policy: {default: allow, network: {hosts: [b.test, c.test], per_minute: 60}}"
    (both,) = sandboxes(f"{{name: x, {asks}, {step % more}}}")

    assert (alone.hosts, alone.network, alone.connections_per_minute) == (
        ("a.test", "b.test"), False, 9,
    )  # fmt: skip
    assert (closed.hosts, closed.network) == ((), False)
    assert (both.hosts, both.connections_per_minute) == (("b.test:80", "b.test:443"), 9)


def test_a_drafted_workflow_never_leaves_the_sandbox(sandboxes):
    """Whatever a draft says: sandbox auto, no network, nothing beside the workspace."""
    asks = "command_policy: {default: allow, network: {hosts: [a.test]}, files: {write: ['/**']}}\n"
    for spec in sandboxes(asks + WIDE, drafted=True):
        assert (spec.backend, spec.network, spec.hosts) == ("auto", False, ())
        assert (spec.write, spec.read) == (("/w",), ("/w",))
        assert not spec.refused


def test_a_check_can_only_read_the_workspace(config):
    """The commands of validation rules get the workspace read-only."""
    here = standing(WIDE)
    spec = sandbox_of(here, here.spec.sub_steps[0], config, writable=False)
    assert spec.write == ()
    assert "/w" in spec.read


@pytest.mark.parametrize(
    ("files", "read", "write", "only_named"),
    [
        ({"read": ["**"], "write": ["**"]}, ("/w",), ("/w",), False),
        ({"write": []}, ("/data", "/w"), (), False),
        ({"write": ["build/**"]}, ("/data", "/w"), ("/w/build",), False),
        ({"read": ["src/**", "docs/**"]}, ("/w/src", "/w/docs"), ("/w/src", "/w/docs"), True),
        ({"read": ["**", "/data/**"]}, ("/w", "/data"), ("/w",), False),
        ({"read": ["**", "/data/a/**"]}, ("/w", "/data/a"), ("/w",), False),
        ({"read": ["**", "/etc/**", "/**/x"]}, ("/w", "/data"), ("/w",), False),
        ({"read": ["src/*.py"], "write": ["out/a.txt"]}, ("/w/src",), ("/w/out",), True),
        ({"read": ["../other/**"], "write": ["/tmp/**"]}, (), (), True),
    ],
)
def test_the_files_of_a_policy_narrow_the_lists(files, read, write, only_named):
    """Its absolute places open nothing that the workflow did not name."""
    spec = under({"files": files}, read=("/data",))
    assert (spec.read, spec.write, spec.only_named) == (read, write, only_named)


def test_limits_are_the_stricter_ones():
    """Of policy and parent; what is not said stays."""
    limits = {
        "time_s": 2.5,
        "cpu_s": 60,
        "memory_mb": 0.5,
        "procs": 9,
        "disk_mb": 7,
        "output_mb": 3,
    }
    spec = under({"limits": limits}, cpu_s=10, file_mb=4)
    assert (spec.time_s, spec.cpu_s, spec.memory_mb, spec.processes) == (2.5, 10, 1, 9)
    assert (spec.disk_mb, spec.output_mb, spec.file_mb) == (7, 3, 4)


def test_what_is_required_and_protected_adds_up():
    """Names a policy protects go to the sandbox; patterns over several names are for the judge."""
    spec = under({"require": ["net"], "files": {"protect": ["keys/**", "*.pem"]}}, require=("net",))
    assert spec.require == ("net",)
    assert "keys" in spec.protect and "*.pem" not in spec.protect


def test_the_file_of_a_policy_is_protected_from_those_under_it(sandboxes, tmp_path):
    """Wherever it lies, and by its whole path."""
    (tmp_path / "mine.yaml").write_text("default: allow\n")
    (spec,) = sandboxes(
        f"{{name: x, command_policy: {tmp_path}/mine.yaml, "
        "sub_steps: [{id: a, kind: shell, command: x}]}"
    )
    assert str(tmp_path / "mine.yaml") in spec.protect


@pytest.mark.parametrize(
    ("layer", "files"),
    [("fs_read", {"read": ["*.txt"]}), ("fs_write", {"write": ["a.txt"]})],
)
def test_a_layer_that_a_pattern_keeps_the_sandbox_from_is_refused(layer, files):
    """The sentence names the pattern and how to write it."""
    said = under({"require": [layer], "files": files}).refused
    assert f"requires `{layer}`" in said and "build/**" in said
    assert not under({"require": [layer], "files": {"read": ["**"], "write": ["o/**"]}}).refused


@pytest.mark.parametrize("host", ["https://a.test", "127.0.0.1", "a.test:http", "*"])
def test_what_is_no_host_is_an_error_of_the_file(host):
    """In `sandbox.network`, with the line."""
    problems = load(
        f"name: x\nsandbox: {{network: ['{host}']}}\n"
        "sub_steps: [{id: a, kind: shell, command: x}]\n"
    ).problems
    assert any("is no host; write it like" in str(problem) for problem in problems)
