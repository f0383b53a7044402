"""Files in the older style run to the end their author meant."""

from __future__ import annotations


def test_values_reach_commands_by_the_older_forms(bench):
    """`${payload.K}` and `${env.K}` inside quotes, `payload_keys`, `payload_from`, no routes."""
    outcome = bench.run(
        """
        version: 1.10
        timeout_minutes: 1
        sub_steps:
          - id: source
            kind: shell
            command: printf '{"status":"it'"'"'s ok","count":3,"more":1}'
            payload_keys: [status, count]
            validation:
          - id: between
            kind: shell
            command: "echo 'other things'"
            timeout_seconds: 5
          - id: last
            kind: shell
            payload_from: source
            env:
              GREETING: "two words"
            command: >-
              echo 'Says: ${env.GREETING}' && echo "status=${payload.status}"
              count=${payload.count} $GREETING $(echo sub)
            on_success: done
            on_failure: abort
        """
    )

    assert outcome.ok, outcome.reason
    taken = outcome.step("source").payload
    assert (taken["status"], taken["count"], "more" in taken) == ("it's ok", 3, False)
    assert outcome.step("last").payload["_stdout"] == (
        "Says: two words\nstatus=it's ok count=3 two words sub\n"
    )


def test_output_that_is_no_json_falls_back_or_aborts(bench):
    """`payload_keys_on_error: fallback` keeps the text; the default fails the step."""
    step = "{id: a, kind: shell, command: echo hi, payload_keys: [k], max_sub_step_retries: 0"
    fallback = bench.run(
        f"{{name: f, sub_steps: [{step}, payload_keys_on_error: fallback}}, "
        "{id: b, kind: shell, command: 'true'}]}"
    )
    abort = bench.run(f"{{name: g, sub_steps: [{step}}}]}}")

    assert fallback.step("a").payload == {"_stdout": "hi\n"}
    assert not abort.ok


def test_a_gate_of_conditions_leads_where_it_says(bench):
    """`when_any` with a mismatch route, and a dropped step's way out."""
    outcome = bench.run(
        """
        name: gate
        sub_steps:
          - id: role
            kind: shell
            command: echo '{"role":"viewer"}'
            payload_keys: [role]
            expect_payload: yes
            validation_routing:
              - when_any:
                  - {type: payload_value_equals, key: role, value: admin}
                  - {type: payload_value_in_set, key: role, values: [editor], mode: allow}
                on_match: done
                on_mismatch: ask
                on_mismatch_message: "not allowed"
          - id: ask
            kind: shell
            command: "false"
            on_failure: retry
            max_sub_step_retries: 1
            on_dropped: end
          - id: never
            kind: shell
            command: touch never
          - id: end
            kind: shell
            command: test ! -e never
            validation: [{type: command, run: "test ! -e never"}]
        """
    )

    assert outcome.ok, outcome.reason
    assert outcome.step("ask").attempts == 2
    assert not (bench.workspace / "never").exists()
