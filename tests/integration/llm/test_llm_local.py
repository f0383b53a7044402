"""The embedded language model: held to schemas, ranking options, quiet, and quickly stopped."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import time

import pytest

from openry.errors import ModelError, UsageError
from openry.llm import ChatRequest, system, user
from openry.llm.local import grammar_of, open_local
from openry.llm.structured import ask_structured, schema_problems
from openry.llm.wrapper import Stoppable

pytestmark = pytest.mark.model

TURN = {
    "type": "object",
    "properties": {
        "tool": {"enum": ["count_lines", "sort_lines"]},
        "path": {"type": "string", "format": "path", "maxLength": 20},
        "n": {"type": "integer"},
        "word": {"type": "string", "pattern": "^(?!x)[a-z]+$", "maxLength": 8},
    },
    "required": ["tool", "path", "n", "word"],
    "additionalProperties": False,
}


@pytest.fixture(scope="module")
def smollm():
    return open_local("local/smollm2")


def test_it_answers_and_counts(smollm):
    """A short answer ends by itself, costs nothing, and its tokens are counted."""
    reply = smollm.complete(ChatRequest((user("Say hello."),), max_tokens=60))

    assert reply.finish_reason == "stop"
    assert "ello" in reply.text
    assert reply.prompt_tokens > 10
    assert 0 < reply.completion_tokens < 60
    assert reply.cost_usd == 0.0


def test_the_same_question_has_the_same_answer(smollm):
    """At temperature 0 nothing is left to chance."""
    ask = ChatRequest((system("Be brief."), user("Name a fruit.")), max_tokens=20)

    assert smollm.complete(ask) == smollm.complete(ask)


def test_a_schema_holds_it(smollm):
    """Whatever the weak model means, what it writes fits, on one line, without endless numbers."""
    reply = smollm.complete(ChatRequest((user("Sort the names"),), TURN, max_tokens=100))

    value = json.loads(reply.text)
    assert [line for line in schema_problems(value, TURN) if "does not match" not in line] == []
    assert "\n" not in reply.text
    assert len(reply.text) < 200


def test_alternatives_are_held_one_by_one(smollm):
    """Each tool keeps its own arguments: what the agent offers is an `anyOf` of turns."""
    turns = [
        {
            "type": "object",
            "properties": {"tool": {"const": tool}, argument: {"enum": [1, 2]}},
            "required": ["tool", argument],
            "additionalProperties": False,
        }
        for tool, argument in (("head", "lines"), ("pick", "column"))
    ]

    value = ask_structured(
        smollm,
        ChatRequest((user("Show the first line"),), max_tokens=60),
        {"anyOf": turns},
        repairs=0,
    )

    assert set(value) in ({"tool", "lines"}, {"tool", "column"})


def test_a_schema_keeps_its_enumerations_as_they_are():
    """Words inside `enum` and `const` are data, whatever they look like."""
    schema = {"enum": [{"type": "integer"}], "const": {"pattern": "(?=x)"}}

    held = json.loads(grammar_of(schema).split("%json ")[1])

    assert (held["enum"], held["const"]) == (schema["enum"], schema["const"])


def test_an_answer_longer_than_allowed_says_so(smollm):
    """`length` is the reason when the limit cut it."""
    reply = smollm.complete(ChatRequest((user("Tell a long story."),), max_tokens=5))

    assert (reply.finish_reason, reply.completion_tokens) == ("length", 5)


def test_a_question_too_long_is_typed(smollm):
    """The error has both figures."""
    with pytest.raises(ModelError, match=r"too long for `local/smollm2`.*reads 4096") as caught:
        smollm.complete(ChatRequest((user("hello " * 6000),)))

    assert caught.value.code == "context_length"


def test_it_ranks_options_by_likelihood(smollm):
    """All options come back, likeliest first, and the plain fact wins."""
    ranked = smollm.choose("What is the capital of France?", ["Tokyo", "Paris", "a kind of soup"])

    assert ranked[0][0] == "Paris"
    scores = [score for _, score in ranked]
    assert scores == sorted(scores, reverse=True)
    assert all(score < 0 for score in scores)
    with pytest.raises(UsageError, match="empty"):
        smollm.choose("What?", [""])


def test_bytes_that_are_no_text_do_no_harm(smollm):
    """A lone surrogate, as undecodable output has, is asked as a replacement character."""
    assert smollm.complete(ChatRequest((user("say \udcff"),), max_tokens=3)).completion_tokens == 3


def test_it_counts_tokens(smollm):
    """Its own tokens, not an estimate."""
    assert smollm.count_tokens("hello world") == 2
    assert smollm.count_tokens("") == 0


def test_it_is_loaded_once(smollm, tmp_path):
    """Whoever opens it gets the one in memory; a broken file is one sentence."""
    assert open_local("local/smollm2") is smollm
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"GGUF" + os.urandom(500))
    with pytest.raises(ModelError, match=r"broken\.gguf` is not a model in GGUF form") as caught:
        open_local(f"local/{broken}")
    assert caught.value.code == "no_weights"


def run_python(script, **options):
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


def test_a_process_with_it_is_quiet_small_unreachable_and_leaves_nothing(tmp_path):
    """Both embedders and the language model: no word printed, no TCP port, 1.2 GiB at most."""
    script = """
        from openry.llm import ChatRequest, user
        from openry.llm.embed import open_embedder
        from openry.llm.local import open_local
        for language in ("english", "multilingual"):
            open_embedder(language).embed(["sort the names"] * 20)
        model = open_local("local/smollm2")
        model.complete(ChatRequest((user("x " * 400),), max_tokens=8))
        listening = [
            line for table in ("tcp", "tcp6") for line in open(f"/proc/self/net/{table}")
            if line.split()[3] == "0A"
        ]
        ours = {line.split()[9] for line in listening}
        import os
        held = {os.readlink(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd")
                if os.path.exists(f"/proc/self/fd/{fd}") or os.path.islink(f"/proc/self/fd/{fd}")}
        print(len([inode for inode in ours if f"socket:[{inode}]" in held]))
        # Not `ru_maxrss`: whoever starts a program hands down its own.
        peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
        print(int(peak.split()[1]) // 1024)
    """
    process = run_python(script, env={**os.environ, "TMPDIR": str(tmp_path)})

    out, err = process.communicate(timeout=120)

    ports, rss_mib = map(int, out.split())
    assert (process.returncode, err, ports) == (0, "", 0)
    assert rss_mib <= 1228
    assert list(tmp_path.iterdir()) == []


def test_a_call_ends_when_somebody_wants_it_to(smollm):
    """The call is given up, typed, and the model answers the next one."""
    wishes = iter((False, True, True))
    request = ChatRequest((user("Count from 1 to 900."),), max_tokens=900)

    with pytest.raises(ModelError) as caught:
        Stoppable(smollm, lambda: next(wishes, True)).complete(request)

    assert caught.value.code == "stopped"
    assert smollm.complete(ChatRequest((user("Say hi."),), max_tokens=4)).completion_tokens


def test_a_process_can_end_while_the_library_reads(tmp_path):
    """The thread that is left to itself crashes nothing: the status is the one that was meant."""
    script = """
        import sys
        from openry.errors import ModelError
        from openry.llm import ChatRequest, user
        from openry.leaving import leave
        from openry.llm.local import open_local
        from openry.llm.wrapper import Stoppable
        model = Stoppable(open_local("local/smollm2"), lambda: True)
        try:
            model.complete(ChatRequest((user("many words " * 1500),), max_tokens=400))
        except ModelError as error:
            print(error.code)
        sys.exit(leave("it", 7))
    """
    process = run_python(script, env={**os.environ, "TMPDIR": str(tmp_path)})

    out, err = process.communicate(timeout=120)

    assert (process.returncode, out, err) == (7, "stopped\n", "")
    assert list(tmp_path.iterdir()) == []


def test_ctrl_c_stops_a_long_answer_at_once():
    """The interrupt arrives while it is made, not when the answer is complete."""
    script = """
        from openry.llm import ChatRequest, user
        from openry.llm.local import open_local
        model = open_local("local/smollm2")
        print("asking", flush=True)
        try:
            model.complete(ChatRequest((user("Tell a very long story."),), max_tokens=3500))
        except KeyboardInterrupt:
            print("stopped")
    """
    process = run_python(script)
    assert process.stdout.readline() == "asking\n"
    time.sleep(1.0)

    process.send_signal(signal.SIGINT)
    out, _ = process.communicate()

    assert out == "stopped\n"
