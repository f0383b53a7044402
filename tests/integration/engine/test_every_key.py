"""Every key of the language has a test that fails without its feature; here is which.

Keys that nothing else tests are tested below.
"""

from __future__ import annotations

import ast
import json
from functools import cache
from pathlib import Path

import pytest

from openry.errors import UsageError
from openry.llm import ChatReply, ScriptedModel
from openry.orchestrator import spec
from openry.orchestrator.judging import missing_keys
from openry.orchestrator.rules import RULE_TYPES
from openry.orchestrator.settings import sandbox_of

TESTS = Path(__file__).parents[2]
COURSES, STEPS = "integration/engine/test_courses.py", "integration/engine/test_steps.py"
LOADER, ROUTING = "unit/orchestrator/test_dsl_loader.py", "unit/orchestrator/test_dsl_routing.py"
EACH, OVERFLOW = "integration/engine/test_for_each.py", "integration/engine/test_overflow.py"
OLDER, BRAKES = "integration/engine/test_older_files.py", "integration/engine/test_brakes.py"
MORE, HERE = "integration/engine/test_orchestrator_more.py", "integration/engine/test_every_key.py"
SETTINGS, NOTICES = "unit/engine/test_step_settings.py", "integration/engine/test_notices.py"
INPUTS = "unit/engine/test_inputs_and_names.py"
OUTSIDE = "integration/engine/test_outside_agents.py"
WRITTEN = (LOADER, "test_older_files_load_and_mean_what_their_author_meant")

COMPOSITION = {
    **dict.fromkeys(("name", "version", "description", "note"), WRITTEN),
    "concurrency": (COURSES, "test_no_more_instances_of_a_name_run_than_may"),
    "inputs": (HERE, "test_a_compositions_inputs_reach_its_big_steps"),
    "notify": (NOTICES, "test_somebody_is_told_of_what_they_asked_for"),
    "big_steps": (COURSES, "test_big_steps_run_in_order_and_hand_on_their_payload"),
}
BIG_STEP = {
    **dict.fromkeys(("description", "note"), WRITTEN),
    "ref": (COURSES, "test_a_missing_big_step_is_refused_before_anything_runs"),
    "on_success": (ROUTING, "test_a_composition_follows_its_routes"),
    "on_failure": (COURSES, "test_a_failed_big_step_takes_its_failure_route"),
    "when": (COURSES, "test_a_failed_big_step_takes_its_failure_route"),
    "inputs": (HERE, "test_a_compositions_inputs_reach_its_big_steps"),
}
WORKFLOW = {
    **dict.fromkeys(("name", "version", "description", "note"), WRITTEN),
    "inputs": (COURSES, "test_wrong_inputs_are_all_told_before_anything_runs"),
    "timeout_minutes": (BRAKES, "test_the_big_steps_clock_is_not_reset_by_retries"),
    "max_retries": (
        COURSES,
        "test_a_big_step_is_retried_from_its_start_on_a_restored_workspace",
    ),
    "agent": (HERE, "test_an_agent_has_the_settings_of_its_step_over_its_workflows"),
    "sandbox": (SETTINGS, "test_a_step_narrows_what_its_workflow_says"),
    "command_policy": (
        "integration/engine/test_policies.py",
        "test_a_workflow_is_under_moderate_unless_it_says_otherwise",
    ),
    "env": (HERE, "test_variables_of_the_step_lie_over_the_workflows"),
    "capabilities": (HERE, "test_capabilities_of_the_workflow_are_offered_too"),
    "workspace": (HERE, "test_the_workspace_is_shared_or_the_instances_own"),
    "notify": (NOTICES, "test_somebody_is_told_of_what_they_asked_for"),
    "sub_steps": (ROUTING, "test_a_target_that_is_no_step_leaves_for_another_workflow"),
}
STEP = {
    **dict.fromkeys(("name", "note"), WRITTEN),
    "id": (LOADER, "test_every_problem_comes_out_at_once_with_line_and_hint"),
    "kind": (LOADER, "test_defaults_depend_on_the_kind"),
    "description": (STEPS, "test_an_agent_step_acts_through_the_hand"),
    "prompt_blocks": (STEPS, "test_prompt_blocks_stand_before_the_task"),
    "command": (STEPS, "test_a_shell_step_hands_its_output_on"),
    "capability": (STEPS, "test_a_capability_step_puts_its_result_into_the_payload"),
    "args": (STEPS, "test_a_capability_says_what_is_wrong_with_its_arguments"),
    "prompt": (COURSES, "test_an_approval_waits_for_a_person"),
    "approvers": (HERE, "test_only_who_is_named_may_answer"),
    "expires_minutes": (COURSES, "test_an_unanswered_approval_expires"),
    "for_each": (EACH, "test_each_item_has_a_run_and_the_payload_keeps_their_order"),
    "agent": (HERE, "test_an_agent_has_the_settings_of_its_step_over_its_workflows"),
    "timeout_seconds": (STEPS, "test_a_slow_command_is_stopped_and_says_timeout"),
    "max_tool_calls": (STEPS, "test_the_call_after_the_last_one_fails_the_step"),
    "parallel_actions": (
        "integration/engine/test_parallel_steps.py",
        "test_actions_of_one_reply_are_under_way_at_the_same_time",
    ),
    "blackboard": (
        "integration/engine/test_blackboards.py",
        "test_what_one_session_puts_there_another_finds",
    ),
    "max_sub_step_retries": (COURSES, "test_retries_stop_at_the_limit"),
    "retry_backoff_seconds": (COURSES, "test_backoff_waits_before_a_retry"),
    "on_success": (COURSES, "test_routes_lead_where_they_say"),
    "on_failure": (COURSES, "test_routes_lead_where_they_say"),
    "on_validation_fail": (COURSES, "test_routes_lead_where_they_say"),
    "on_payload_missing": (HERE, "test_a_missing_payload_has_a_route_of_its_own"),
    "on_dropped": (EACH, "test_retries_of_a_spent_item_are_not_multiplied_by_the_step"),
    "expect_payload": (HERE, "test_a_missing_payload_has_a_route_of_its_own"),
    "payload_keys": (STEPS, "test_payload_keys_pick_from_what_a_command_printed"),
    "payload_keys_on_error": (OLDER, "test_output_that_is_no_json_falls_back_or_aborts"),
    "payload_from": (STEPS, "test_payload_from_brings_back_an_earlier_payload"),
    "inherit_payload": (STEPS, "test_an_inherited_payload_lies_under_the_new_one"),
    "validation": (COURSES, "test_validation_fails_a_step_that_said_it_was_done"),
    "validation_routing": (COURSES, "test_conditional_routes_are_decided_by_rules"),
    "command_policy": (
        "integration/engine/test_policies.py",
        "test_a_step_narrows_and_never_widens",
    ),
    "secrets": (STEPS, "test_named_secrets_reach_only_their_step_and_no_row"),
    "sandbox": (SETTINGS, "test_a_step_narrows_what_its_workflow_says"),
    "env": (HERE, "test_variables_of_the_step_lie_over_the_workflows"),
    "capabilities": (STEPS, "test_an_agent_is_offered_what_the_step_names"),
    "max_output_tokens": (OVERFLOW, "test_a_step_may_fail_or_go_on_without_a_handler"),
    "max_step_output_tokens": (OVERFLOW, "test_the_outputs_of_a_step_together_have_a_limit"),
    "on_output_overflow": (OVERFLOW, "test_the_shipped_scripts_do_as_well"),
    "overflow_strategy": (OVERFLOW, "test_a_step_may_fail_or_go_on_without_a_handler"),
    "snapshot": (MORE, "test_a_step_keeps_the_files_when_it_says_so"),
    "irreversible": (
        "integration/engine/test_crashes.py",
        "test_what_cannot_be_undone_waits_for_a_person",
    ),
    "model_ladder": (NOTICES, "test_a_retry_climbs_the_ladder_of_models"),
}
FOR_EACH = {
    "items": (EACH, "test_items_are_a_list_a_template_or_a_glob"),
    "as": (EACH, "test_each_item_has_a_run_and_the_payload_keeps_their_order"),
    "max_parallel": (EACH, "test_no_more_items_run_at_once_than_may"),
    "on_item_failure": (EACH, "test_a_failed_item_may_be_skipped"),
}
AGENT = {
    **dict.fromkeys(
        ("model", "temperature", "system", "max_turns", "max_tokens", "max_cost_usd", "mode"),
        (HERE, "test_an_agent_has_the_settings_of_its_step_over_its_workflows"),
    ),
    "max_cost_usd": (HERE, "test_an_agents_money_is_limited"),
    "max_turns": (HERE, "test_an_agents_turns_and_tokens_are_limited"),
    "max_tokens": (HERE, "test_an_agents_turns_and_tokens_are_limited"),
    "adapter": (
        "integration/engine/test_outside_agents.py",
        "test_a_step_is_done_through_the_door",
    ),
}
INPUT = {
    **dict.fromkeys(("type",), (INPUTS, "test_text_is_read_as_its_type_wants")),
    **dict.fromkeys(
        ("required", "choices", "pattern"), (INPUTS, "test_what_does_not_fit_is_named")
    ),
    "default": (LOADER, "test_every_problem_comes_out_at_once_with_line_and_hint"),
    "description": WRITTEN,
}
BACKOFF = dict.fromkeys(("base", "cap", "jitter"), (ROUTING, "test_backoff_doubles_up_to_its_cap"))
CONCURRENCY = {
    "max_parallel_instances": (COURSES, "test_no_more_instances_of_a_name_run_than_may"),
}
PROMPT_BLOCK = {
    **dict.fromkeys(
        ("type", "content", "path", "label"), (STEPS, "test_prompt_blocks_stand_before_the_task")
    ),
    "optional": (LOADER, "test_a_prompt_file_that_is_missing_is_an_error_unless_optional"),
}
ROUTE = {
    "when": (COURSES, "test_conditional_routes_are_decided_by_rules"),
    "when_any": (OLDER, "test_a_gate_of_conditions_leads_where_it_says"),
    "when_all": (ROUTING, "test_conditions_are_asked_no_further_than_needed"),
    "on_match": (COURSES, "test_conditional_routes_are_decided_by_rules"),
    "on_mismatch": (ROUTING, "test_conditions_are_asked_no_further_than_needed"),
    "on_mismatch_message": (ROUTING, "test_a_route_can_retry_with_a_message_and_abort"),
    "note": WRITTEN,
}
SANDBOX = dict.fromkeys(
    ("backend", "read", "write", "network"),
    (SETTINGS, "test_a_step_narrows_what_its_workflow_says"),
)
NETWORK = dict.fromkeys(("hosts", "per_minute"), (HERE, "test_a_network_has_hosts_and_a_rate"))
NOTIFY = {
    **dict.fromkeys(("on", "command"), (NOTICES, "test_somebody_is_told_of_what_they_asked_for")),
    "webhook": (NOTICES, "test_a_web_address_is_told"),
}
TABLE = {
    spec.Composition: COMPOSITION,
    spec.BigStep: BIG_STEP,
    spec.WorkflowSpec: WORKFLOW,
    spec.SubStep: STEP,
    spec.ForEach: FOR_EACH,
    spec.AgentSpec: AGENT,
    spec.InputSpec: INPUT,
    spec.Backoff: BACKOFF,
    spec.Concurrency: CONCURRENCY,
    spec.PromptBlock: PROMPT_BLOCK,
    spec.RouteRule: ROUTE,
    spec.SandboxSettings: SANDBOX,
    spec.NetworkSpec: NETWORK,
    spec.NotifySpec: NOTIFY,
}


def test_every_part_of_the_schema_is_here():
    """What `openry-orchestrator schema` prints: each of its mappings is in the table, or a rule."""
    rules = {rule.__name__ for rule in RULE_TYPES.values()}
    shapes = spec.json_schema()["$defs"]
    mappings = {name for name, shape in shapes.items() if "properties" in shape}
    assert mappings - rules == {model.__name__ for model in TABLE}


@pytest.mark.parametrize("model", TABLE, ids=lambda model: model.__name__)
def test_every_key_has_a_test(model):
    """A key without one, or whose test is gone, is missed here."""
    keys = {info.alias or name for name, info in model.model_fields.items()}
    assert set(TABLE[model]) == keys
    gone = {key: place for key, place in TABLE[model].items() if place[1] not in _tests(place[0])}
    assert gone == {}


@cache
def _tests(file):
    tree = ast.parse((TESTS / file).read_text())
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


# --- what nothing else tests ----------------------------------------------------------------------


def report(**payload):
    return json.dumps({"action": "report", "status": "completed", "payload": payload})


def test_an_agent_has_the_settings_of_its_step_over_its_workflows(bench):
    """Model, temperature and words of its own; what the step does not say is the workflow's."""
    bench.models["mine"] = ScriptedModel([report()])
    outcome = bench.run(
        """
        name: x
        agent: {model: other, temperature: 0.3, system: 'you work for {{ inputs.who }}'}
        inputs: {who: {default: ann}}
        sub_steps:
          - {id: a, description: do it, agent: {model: mine, mode: free}}
        """
    )
    assert outcome.ok, outcome.reason
    (request,) = bench.models["mine"].requests
    assert request.temperature == 0.3
    assert "you work for ann" in request.messages[0].text


def test_an_agents_turns_and_tokens_are_limited(bench):
    """`max_turns` ends it with that reason; `max_tokens` is the length of one answer."""
    turns = [json.dumps({"action": "run", "command": f"echo {n}"}) for n in range(9)]
    model = bench.models["mine"] = ScriptedModel(turns)
    outcome = bench.run(
        """
        name: x
        sub_steps: [{id: a, description: go on, agent: {model: mine, max_turns: 2, max_tokens: 77}}]
        """
    )
    assert outcome.state == "failed" and "turn" in outcome.reason
    assert len(model.requests) <= 3
    assert {request.max_tokens for request in model.requests} == {77}


def test_an_agents_money_is_limited(bench):
    """What is spent is spent; the call after it is not made, and the step says why."""
    turns = (json.dumps({"action": "run", "command": "true"}), report())
    replies = [ChatReply(text, prompt_tokens=10, cost_usd=0.5) for text in turns]
    model = bench.models["mine"] = ScriptedModel(replies)
    outcome = bench.run(
        "{name: x, sub_steps: [{id: a, description: buy, agent: {model: mine, max_cost_usd: 0.4}}]}"
    )
    assert outcome.state == "failed"
    assert len(model.requests) == 1


def test_capabilities_of_the_workflow_are_offered_too(bench):
    """A step that names none has its workflow's, and is in that mode."""
    (bench.workspace / "a.txt").write_text("b\na\n")
    call = {"action": "sort_lines", "arguments": {"path": "a.txt", "output": "s.txt"}}
    bench.script(json.dumps(call), report())
    outcome = bench.run(
        "{name: x, capabilities: [sort_lines], sub_steps: [{id: a, description: sort a.txt}]}"
    )
    assert outcome.ok, outcome.reason
    assert bench.read("s.txt") == "a\nb\n"


def test_a_missing_payload_has_a_route_of_its_own(bench):
    """Not the one of failed rules: promised keys, or any payload at all."""
    outcome = bench.run(
        """
        name: x
        sub_steps:
          - {id: a, kind: shell, command: 'echo none', payload_keys: [n], on_payload_missing: c,
             on_validation_fail: b}
          - {id: b, kind: shell, command: 'false'}
          - {id: c, kind: shell, command: 'true'}
        """
    )
    assert [step.id for step in outcome.steps if step.state == "done"] == ["c"]
    wants = spec.SubStep.model_validate({"id": "a", "description": "x", "expect_payload": True})
    assert missing_keys(wants, {}) == ("payload",)
    assert missing_keys(wants, {"any": 1}) == ()


def test_variables_of_the_step_lie_over_the_workflows(bench):
    """Both are rendered; the step's wins where both name one."""
    outcome = bench.run(
        """
        name: x
        inputs: {who: {default: ann}}
        env: {WHO: '{{ inputs.who }}', WHERE: here}
        sub_steps:
          - {id: a, kind: shell, env: {WHERE: there}, command: 'echo "$WHO $WHERE" > out'}
        """
    )
    assert outcome.ok, outcome.reason
    assert bench.read("out") == "ann there\n"


def test_the_workspace_is_shared_or_the_instances_own(bench, tmp_path, monkeypatch):
    """`shared` is where it was started; otherwise each instance has a folder of its own."""
    from openry.orchestrator.loader import load

    monkeypatch.chdir(tmp_path)
    for kind in ("shared", "per_instance"):
        text = f"{{name: x, workspace: {kind}, sub_steps: [{{id: a, kind: shell, command: pwd}}]}}"
        places = {
            bench.engine.run(bench.engine.submit(load(text))).payload["_stdout"].strip()
            for _ in range(2)
        }
        assert len(places) == (1 if kind == "shared" else 2)
        assert (str(tmp_path) in places) is (kind == "shared")


def test_only_who_is_named_may_answer(bench):
    """`approvers` names them; somebody else is told whom it waits for."""
    instance_id = bench.submit(
        "{name: x, sub_steps: [{id: ask, kind: approval, approvers: [ann, bob]}]}"
    )
    bench.engine.run(instance_id)
    with pytest.raises(UsageError, match="`ask` waits for ann, bob"):
        bench.engine.answer(instance_id, approve=True, by="carl")
    assert bench.engine.answer(instance_id, approve=True, by="bob") == 1
    assert bench.engine.run(instance_id).ok


def test_a_compositions_inputs_reach_its_big_steps(bench, tmp_path):
    """`inputs` of a big step are templates over the composition's."""
    from openry.orchestrator.loader import load

    (tmp_path / "one.yaml").write_text(
        "name: one\ninputs: {what: {}}\n"
        "sub_steps: [{id: a, kind: shell, command: 'echo {{ inputs.what }} > out'}]\n"
    )
    (tmp_path / "all.yaml").write_text(
        "name: all\ninputs: {who: {}}\n"
        "big_steps: [{ref: one, inputs: {what: 'for {{ inputs.who }}'}}]\n"
    )
    loaded = load(tmp_path / "all.yaml")
    about = {"inputs": {"who": "ann"}, "workspace": bench.workspace}
    outcome = bench.engine.run(bench.engine.submit(loaded, **about))
    assert outcome.ok, outcome.reason
    assert bench.read("out") == "for ann\n"


def test_a_network_has_hosts_and_a_rate(bench):
    """`hosts` are those it may reach, `per_minute` how often; a step only takes away."""
    instance_id = bench.submit(
        """
        name: x
        sandbox: {network: {hosts: [a.test, b.test], per_minute: 30}}
        sub_steps:
          - {id: a, kind: shell, command: x}
          - {id: b, kind: shell, command: x, sandbox: {network: {hosts: [a.test], per_minute: 5}}}
        """
    )
    room = bench.engine.room
    standing = room.start_of(bench.engine._instance(instance_id))
    a, b = (sandbox_of(standing, step, room.config) for step in standing.spec.sub_steps)
    assert (set(a.hosts), a.connections_per_minute) == ({"a.test", "b.test"}, 30)
    assert ({host.partition(":")[0] for host in b.hosts}, b.connections_per_minute) == (
        {"a.test"},
        5,
    )
