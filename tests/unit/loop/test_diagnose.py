"""Diagnosis: plain code names step, cause, class and signature."""

from __future__ import annotations

import pytest

from loop.diagnose import Diagnosis, FailureClass, diagnose, rule_path
from loop.evidence import CommandSeen, StepRun, Trial
from openry.models import RuleResult

EXISTS = {"type": "file_exists", "path": "out.txt"}
HELD, BROKE = RuleResult("file_exists", True), RuleResult("file_exists", False, "`out.txt` exists")


def trial(*steps: StepRun, hard=(HELD,), **more) -> Trial:
    done = all(step.passed for step in steps)
    return Trial("name: w", "completed" if done else "failed", steps, hard=hard, **more)


def failed(stderr: str = "", code: int = 1, **more) -> StepRun:
    command = CommandSeen("grep -c x ap.log", code, stderr=stderr)
    values = {"kind": "shell", "state": "failed", "attempts": 1, "commands": (command,), **more}
    return StepRun("a", **values)


@pytest.mark.parametrize(
    ("stderr", "missing"),
    [
        ("grep: ap.log: No such file or directory", "ap.log"),
        ("cat: 'my logs/ap.log': No such file or directory", "logs/ap.log"),
        ("sort: cannot read: ap.log: No such file or directory", "ap.log"),
        ('awk: cannot open "ap.log" (No such file or directory)', "ap.log"),
        ("sed: can't read ap.log: No such file or directory", "ap.log"),
        ("FileNotFoundError: [Errno 2] No such file or directory: 'ap.log'", "ap.log"),
        ("`ap.log` does not exist", "ap.log"),
    ],
)
def test_a_missing_file_is_named(stderr, missing):
    """Whatever program says it, the file that was looked for in vain is found."""
    found = diagnose(trial(failed(stderr, 2), hard=(BROKE,)), [EXISTS])

    assert found.failure_class is FailureClass.WRONG_COMMAND
    assert found.step == "a"
    assert found.missing.endswith(missing)


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        (failed("sh: 1: grpe: not found", 127), FailureClass.WRONG_COMMAND),
        (failed("openry: sandbox unavailable: install bubblewrap", 125), FailureClass.INFRA),
        (failed("openry: not allowed: git push", 126), FailureClass.NOT_ALLOWED),
        (
            failed("", 124, commands=(CommandSeen("x", 124, ending="timeout"),)),
            FailureClass.TIMEOUT,
        ),
        (
            failed("", 1, error_class="missing_dependency", error="install jq"),
            FailureClass.NEEDS_SETUP,
        ),
        (failed("", 1, reason="loop: the same command 3 times"), FailureClass.LOOPED),
        (failed("", 1, reason="budget: 10 tokens left"), FailureClass.BUDGET),
        (failed("", 1, kind="agent", reason="no_network: connection refused"), FailureClass.INFRA),
        (
            failed("", 0, rules=(RuleResult("payload_has_key", False, "key `n`"),)),
            FailureClass.BAD_FORMAT,
        ),
        (failed("", 0, rules=(RuleResult("file_contains", False),)), FailureClass.WRONG_CONTENT),
        (failed("boom", 3), FailureClass.WRONG_COMMAND),
    ],
)
def test_each_kind_of_failure_has_its_class(step, expected):
    """The class says who can mend it."""
    assert diagnose(trial(step, hard=(BROKE,)), [EXISTS]).failure_class is expected


def test_a_silent_wrong_is_blamed_on_who_wrote_the_file():
    """Every step passes, the acceptance fails: the last writer of the judged file is named."""
    steps = (
        StepRun("a", "shell", "done", attempts=1, changed=("out.txt",)),
        StepRun("b", "shell", "done", attempts=1, changed=("other.txt",)),
    )

    found = diagnose(trial(*steps, hard=(BROKE,)), [EXISTS])

    assert found.failure_class is FailureClass.SILENT_WRONG
    assert found.step == "a"


def test_a_check_that_fails_where_the_acceptance_holds_is_suspected():
    """The result is right by all that was agreed: the step's own rule may be the mistake."""
    step = failed("", 0, rules=(RuleResult("file_contains", False),))

    assert diagnose(trial(step), [EXISTS]).failure_class is FailureClass.CHECK_FALSE_ALARM


def test_a_signature_ignores_names_and_numbers():
    """The same failure on another file, another line and another day has the same signature."""
    one = diagnose(trial(failed("x: a.log: bad line 3 at 09:00:01", 2), hard=(BROKE,)), [EXISTS])
    two = diagnose(trial(failed("x: b.log: bad line 7 at 10:30:00", 2), hard=(BROKE,)), [EXISTS])
    other = diagnose(trial(failed("x: a.log: bad line 3", 1), hard=(BROKE,)), [EXISTS])

    assert one.signature == two.signature != other.signature


def test_diagnosis_and_trial_survive_the_journal():
    """What the journal holds reads back as equal values."""
    whole = trial(failed("x", 2, rules=(BROKE,)), hard=(BROKE,), changed=("out.txt",))
    found = diagnose(whole, [EXISTS])

    assert Trial.from_data(whole.to_data()) == whole
    assert Diagnosis.from_data(found.to_data()) == found


@pytest.mark.parametrize(
    ("rule", "path"),
    [
        ({"type": "file_contains", "path": "a.txt"}, "a.txt"),
        ({"type": "command", "run": "test $(wc -l < head.txt) -eq 3"}, "head.txt"),
        ({"type": "command", "run": "! grep -q '^$' ./out.txt"}, "out.txt"),
        ({"type": "payload_has_key", "key": "n"}, ""),
        ({"type": "not", "rule": {"type": "file_exists", "path": "b.txt"}}, "b.txt"),
    ],
)
def test_a_rule_is_about_a_file(rule, path):
    """The file that a rule judges is read from its keys, or from its command."""
    assert rule_path(rule) == path


def test_a_rule_over_many_files_blames_the_step_that_changed_one_of_them():
    """A command that names `conf/*.conf` is about whoever wrote there last, not the last step."""
    steps = (
        StepRun("repair", "shell", "done", attempts=1, changed=("conf/a.conf",)),
        StepRun("list", "shell", "done", attempts=1, changed=("changes.csv",)),
    )
    rule = {"type": "command", "run": "test $(cat conf/*.conf | wc -l) = 36"}
    trial = Trial("", "completed", steps, hard=(RuleResult("command run=...", False),))

    assert diagnose(trial, (rule,)).step == "repair"
