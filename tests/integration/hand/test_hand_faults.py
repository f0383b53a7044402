"""Faults that other tools had, and what the hand promises: each has a test that can fail."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[2]
CASES = TESTS.parent.parent / "shared" / "cases" / "faults.jsonl"
HAND, ENGINE, UNIT = "integration/hand/test_hand_", "integration/engine/test_", "unit/orchestrator/"

#: By case: the tests that hold it, as file and function.
HELD_BY: dict[str, tuple[str, ...]] = {
    "B01": (f"{HAND}ending.py::test_a_background_child_does_not_hold_the_answer",
            f"{HAND}ending.py::test_a_quiet_background_child_is_ended_too"),
    "B03": (f"{HAND}ending.py::test_a_timeout_keeps_what_was_printed_and_leaves_nothing_alive",
            f"{HAND}in_process.py::test_a_timeout_leaves_nothing_alive",
            f"{ENGINE}brakes.py::test_the_hard_brake_ends_the_whole_tree"),
    "B05": (f"{HAND}ending.py::test_a_timeout_keeps_what_was_printed_and_leaves_nothing_alive",),
    "B07": (f"{HAND}answer.py::test_standard_input_is_empty_unless_passed_on",
            f"{ENGINE}shell_faults.py::test_a_step_that_waits_for_input_ends_at_once"),
    "B09": (f"{HAND}output.py::test_bytes_that_are_not_utf8_become_replacement_characters",),
    "B11": (f"{HAND}output.py::test_terminal_noise_is_folded",
            f"{HAND}in_process.py::test_tokens_are_counted_after_folding"),
    "B13": (f"{HAND}output.py::test_one_gigantic_line_is_bounded",),
    "B15": (f"{HAND}output.py::test_a_flood_does_not_fill_memory",
            f"{ENGINE}shell_faults.py::test_a_flood_of_a_step_or_a_rule_is_bounded"),
    "B17": (f"{HAND}answer.py::test_the_exit_status_is_the_shells_own",
            f"{ENGINE}shell_faults.py::test_a_rule_sees_a_failing_part_of_a_pipeline"),
    "B19": (f"{HAND}answer.py::test_quotes_heredocs_and_pid_reach_the_shell_as_they_are",),
    "B21": (f"{HAND}answer.py::test_nothing_persists_from_call_to_call",
            f"{HAND}answer.py::test_a_wrong_call_is_answered_in_json"),
    "B23": (f"{HAND}secrets.py::test_secrets_of_the_environment_are_withheld_and_masked",
            f"{HAND}answer.py::test_the_environment_is_built_not_inherited",
            f"{ENGINE}secrets_stay_out.py::"
            "test_a_secret_is_in_no_file_whatever_a_workflow_does_with_it"),
    "B25": (f"{HAND}policy.py::test_every_part_of_a_line_is_judged",),
    "B27": (f"{HAND}output.py::test_no_cut_splits_a_character",
            f"{HAND}run.py::test_a_payload_that_is_no_payload_is_refused_at_the_door"),
    "B29": (f"{HAND}ledger.py::test_parallel_calls_leave_every_row",
            f"{HAND}ledger.py::test_a_locked_ledger_is_waited_for"),
    "B67": (f"{HAND}ledger.py::test_a_full_disk_is_told_and_does_not_stop_the_search_for_it",),
    "B69": (f"{HAND}answer.py::test_a_command_longer_than_an_argument_may_be_runs",
            f"{HAND}run.py::test_a_payload_may_come_from_a_file_or_standard_input",
            f"{HAND}in_process.py::test_what_the_kernel_finds_too_long_is_told_with_the_way_round"),
    "B71": (f"{HAND}answer.py::test_quotes_heredocs_and_pid_reach_the_shell_as_they_are",
            f"{HAND}answer.py::test_a_wrong_call_is_answered_in_json",
            f"{UNIT}test_dsl_yaml.py::test_what_cannot_be_read_is_one_sentence_with_its_line"),
}  # fmt: skip

#: By what happens: the tests that hold what the answer is then.
PROMISED: dict[str, tuple[str, ...]] = {
    "four keys in one line of JSON": (f"{HAND}answer.py::test_the_answer_has_exactly_four_keys",),
    "the command ran, or was killed by a signal": (
        f"{HAND}answer.py::test_a_failing_command_is_not_a_failing_tool",
        f"{HAND}answer.py::test_the_exit_status_is_the_shells_own"),
    "124: it took too long": (
        f"{HAND}ending.py::test_a_timeout_keeps_what_was_printed_and_leaves_nothing_alive",),
    "126: the policy refuses it": (f"{HAND}policy.py::test_a_denied_command_is_not_started",),
    "126: nobody is there to say yes": (
        f"{HAND}approval.py::test_a_question_is_stored_once_and_the_command_is_refused",),
    "126: the run's token is missing": (
        f"{HAND}door.py::test_without_the_runs_token_nothing_is_done",
        f"{HAND}below.py::test_a_hand_below_a_run_is_refused"),
    "126: a protected name was made": (
        f"{HAND}protected.py::test_what_is_made_in_folders_below_is_put_away_too",),
    "125: no sandbox": (f"{HAND}sandbox.py::test_a_sandbox_that_cannot_be_built_refuses",
                        f"{HAND}probe.py::test_without_bubblewrap_nothing_runs_unconfined"),
    "0 and the brake's text: braked, or no longer in progress": (
        f"{HAND}run.py::test_a_braked_run_starts_nothing_more",),
    "the call limit is exact": (f"{HAND}run.py::test_a_limit_of_three_lets_ten_calls_run_three",),
    "a notice where the output is too large": (
        f"{HAND}in_process.py::test_an_agents_answer_is_cut_by_tokens",
        f"{HAND}overflow.py::test_a_large_answer_by_hand_is_kept_and_looked_into"),
    "2: nothing that can be done": (f"{HAND}words.py::test_a_form_that_means_nothing",
                                    f"{HAND}words.py::test_a_command_that_means_nothing"),
    "74: the ledger cannot be written, nothing was started": (
        f"{HAND}ledger.py::test_a_ledger_that_may_not_be_written_starts_nothing",
        f"{HAND}ledger.py::test_a_ledger_in_an_impossible_place_starts_nothing"),
    "a signal ends the tree, and is answered": (
        f"{HAND}ending.py::test_an_interrupt_ends_the_group_and_is_answered",),
    "a killed hand leaves `lost`": (
        f"{HAND}ledger.py::test_a_killed_hand_leaves_a_row_that_recovery_marks_lost",),
}  # fmt: skip


def functions(file: Path) -> set[str]:
    tree = ast.parse(file.read_text("utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("case", HELD_BY)
def test_each_fault_has_its_tests(case: str):
    """They are there under these names; whoever renames one looks at the case again."""
    for place in HELD_BY[case]:
        file, _, name = place.partition("::")
        assert name in functions(TESTS / file), f"{case}: {place} is gone"


@pytest.mark.parametrize("promise", PROMISED)
def test_each_promise_has_its_tests(promise: str):
    """The rows of the table of answers."""
    for place in PROMISED[promise]:
        file, _, name = place.partition("::")
        assert name in functions(TESTS / file), f"{promise}: {place} is gone"


def test_every_fault_of_the_collection_that_is_ours_is_held():
    """B01 to B29 and B67 to B71: what concerns commands."""
    if not CASES.is_file():
        pytest.skip("NOT TESTED: the collection of faults is not here")
    ids = [json.loads(line)["id"] for line in CASES.read_text("utf-8").splitlines()]
    ours = [case for case in ids if 1 <= int(case[1:]) <= 29 or 67 <= int(case[1:]) <= 71]

    assert ours == sorted(HELD_BY)
