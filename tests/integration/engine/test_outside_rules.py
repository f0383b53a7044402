"""Rules that ask the ledger and the network: what they may see, and what nobody gets out."""

from __future__ import annotations

import http.server

import pytest

from openry.errors import UsageError
from openry.ledger.ask import rows_of
from tests.web import serving

STEP = """
    name: asks
    sandbox: {sandbox}
    inputs: {{where: {{default: here}}, port: {{type: int, default: 80}}}}
    sub_steps:
      - id: a
        kind: shell
        command: echo said > {{{{ inputs.where }}}}.txt
        on_validation_fail: abort
        validation: [{rule}]
    """


def judged(bench, rule, sandbox="none", **inputs):
    outcome = bench.run(STEP.format(rule=rule, sandbox=sandbox), inputs=inputs)
    (result,) = outcome.step("a").rules
    assert outcome.ok == result.passed
    return result


# --- the ledger -------------------------------------------------------------------------------

QUERIES = {
    "SELECT 1 FROM commands_log WHERE run_id = :run_id AND command LIKE 'echo%' AND exit_code = 0",
    "SELECT * FROM task_state WHERE run_id = ? AND status = 'completed' AND ':run_id' != ?",
    "WITH me AS (SELECT instance_id FROM workflow_instances) SELECT * FROM me -- :run_id ?",
    "SELECT e.id FROM events e JOIN task_state t ON t.run_id = e.run_id",
}


@pytest.mark.parametrize("query", sorted(QUERIES))
def test_a_query_passes_if_a_row_comes_back(bench, query):
    """What the step did is in the ledger, and a rule may look."""
    result = judged(bench, f'{{type: db_query, query: "{query}"}}')
    assert result.passed, result.message


def test_a_query_without_a_row_fails(bench):
    """No row, no pass."""
    result = judged(bench, "{type: db_query, query: 'SELECT 1 FROM retries'}")
    assert (result.passed, result.message) == (False, "the query returned no row")


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("DELETE FROM commands_log", "only SELECT on the tables of this instance"),
        ("SELECT 1 FROM main.commands_log", "only SELECT on the tables of this instance"),
        ("WITH task_state AS (SELECT * FROM main.task_state) SELECT 1 FROM task_state", "only"),
        ("SELECT name FROM sqlite_master", "only SELECT"),
        ("SELECT name FROM temp.sqlite_master", "only SELECT"),
        ("SELECT sql FROM sqlite_temp_schema", "only SELECT"),
        ("SELECT * FROM pragma_table_info('task_state')", "only SELECT"),
        ("ATTACH '/tmp/other.db' AS other", "only SELECT"),
        ("PRAGMA user_version = 5", "only SELECT"),
        ("SELECT load_extension('x')", "only SELECT"),
        ("SELECT token_hash FROM task_state", "no such column"),
        ("SELECT 1; SELECT 2", "one statement"),
        ("SELEC 1", "syntax error"),
        ("", "one SELECT"),
    ],
)
def test_what_is_no_question_about_this_instance_cannot_be_evaluated(bench, query, said):
    """The rule fails with the reason; nothing is changed and nothing of others is seen."""
    result = judged(bench, f'{{type: db_query, query: "{query or "-- nothing"}"}}')
    assert not result.passed
    assert result.message.startswith("cannot be evaluated: ") and said in result.message


def test_a_query_sees_its_own_instance_only(bench):
    """Rows of other instances are not there, in any table."""
    mine, other = (bench.submit("{name: x, sub_steps: [{id: a, kind: shell, command: echo}]}")
                   for _ in range(2))  # fmt: skip
    bench.engine.run(mine), bench.engine.run(other)
    path = str(bench.engine.ledger.path)
    for table, column in (
        ("workflow_instances", "instance_id"),
        ("task_state", "workflow_instance_id"),
        ("commands_log", "instance_id"),
        ("events", "instance_id"),
        ("payloads", "instance_id"),
    ):
        query = f"SELECT * FROM {table} WHERE {column} != '{mine}'"
        assert rows_of(path, query, instance_id=mine, run_id="") == 0
        assert rows_of(path, query, instance_id=other, run_id="") > 0


def test_a_query_has_two_seconds_and_a_thousand_rows(bench):
    """A query without end is stopped; a huge answer is not read to its end."""
    path = str(bench.engine.ledger.path)
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT {} FROM n"
    with pytest.raises(UsageError, match="longer than 2 s"):
        rows_of(path, endless.format("sum(i)"), instance_id="x", run_id="")
    assert rows_of(path, endless.format("i"), instance_id="x", run_id="") == 1000


# --- the network --------------------------------------------------------------------------------


@pytest.fixture
def web():
    """A server on this host that answers with the status its path names."""

    class Page(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(int(self.path.strip("/")))
            self.send_header("Location", "/200")
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_HEAD = do_GET  # noqa: N815

        def log_message(self, *_):
            """Quiet."""

    with serving(Page) as port:
        yield port


@pytest.mark.parametrize("status", [200, 204, 302, 404, 500])
def test_the_first_answer_counts(bench, web, status):
    """The status is compared as it came; a redirection is not followed."""
    rule = f"{{type: http_status, url: 'http://127.0.0.1:{web}/{status}', expected_status: %d}}"
    assert judged(bench, rule % status).passed
    other = judged(bench, rule % 201)
    assert (other.passed, other.expected, other.actual) == (False, "201", str(status))


def test_the_address_and_the_method_are_the_writers(bench, web):
    """`url` takes the run's values, `method` is sent."""
    rule = (
        "{type: http_status, method: head,"
        " url: 'http://127.0.0.1:{{ inputs.port }}/200', timeout_seconds: 5}"
    )
    assert judged(bench, rule, port=web).passed


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("http://127.0.0.1:1/", "refused"),
        ("ftp://example.test/", "is no web address"),
        ("file:///etc/passwd", "is no web address"),
        ("http://[x/", "is no"),
    ],
)
def test_an_address_that_does_not_answer_cannot_be_evaluated(bench, url, said):
    """No answer is no status."""
    result = judged(bench, f"{{type: http_status, url: '{url}'}}")
    assert result.message.startswith("cannot be evaluated") and said in result.message.lower()


@pytest.mark.sandbox
@pytest.mark.parametrize("network", ["false", "[example.test]"])
def test_only_what_the_sandbox_lets_out_is_asked(bench, web, network):
    """A host that the sandbox does not allow is not asked, and the way out is said."""
    result = judged(
        bench,
        f"{{type: http_status, url: 'http://127.0.0.1:{web}/200'}}",
        f"{{backend: auto, network: {network}}}",
    )
    assert "not among the hosts that the sandbox allows" in result.message
    assert "network: [127.0.0.1]" in result.message


@pytest.mark.sandbox
def test_a_host_that_is_allowed_is_asked_from_inside(bench, web):
    """With the network open the request goes out of the sandbox and comes back."""
    rule = f"{{type: http_status, url: 'http://127.0.0.1:{web}/200'}}"
    assert judged(bench, rule, "{backend: auto, network: true}").passed


# --- values -------------------------------------------------------------------------------------


def test_rules_see_what_the_run_saw(bench):
    """Paths and commands of rules take `inputs`, `run` and the payload the run ended with."""
    rule = "{type: file_contains, path: '{{ inputs.where }}.txt', contains: said}"
    assert judged(bench, rule, where="there").passed
    rule = "{type: command, run: 'test {{ run.attempt }} = 1 && test -e {{ inputs.where }}.txt'}"
    assert judged(bench, rule, where="x y").passed
