"""The README's programs: a tool-calling agent with OpenAI's client, and LangChain's tools."""

from __future__ import annotations

import json
import os
import re
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

pytestmark = pytest.mark.model
ROOT = Path(__file__).parents[3]
READMES = ("README.md", "README.zh-CN.md")


def programs(name: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```\n", (ROOT / name).read_text("utf-8"), re.DOTALL)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "app.log").write_text("ERROR a\nok\nERROR b\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENRY_HOME", str(tmp_path / "home"))
    monkeypatch.setenv(
        "PATH", os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    )
    return tmp_path


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch):
    """What OpenAI's real client sends to a server that first wants a tool, then is content."""
    seen: list[dict] = []
    wish = {
        "id": "call_1",
        "type": "function",
        "function": {
            "name": "count_matching_lines",
            "arguments": '{"path": "app.log", "needle": "ERROR"}',
        },
    }

    class Model(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            seen.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            done = seen[-1]["messages"][-1]["role"] == "tool"
            message = {"role": "assistant", "content": "There are two." if done else None}
            message |= {} if done else {"tool_calls": [wish]}
            choice = {"index": 0, "message": message, "finish_reason": "stop"}
            body = {"id": "1", "object": "chat.completion", "created": 1, "model": "m"}
            told = json.dumps({**body, "choices": [choice]}).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(told)))
            self.end_headers()
            self.wfile.write(told)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("OPENAI_BASE_URL", f"http://127.0.0.1:{server.server_port}/v1")
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    yield seen
    server.shutdown()
    server.server_close()


def test_the_agent_of_the_readme_works(folder: Path, asked: list[dict], capsys) -> None:
    """Tools that fit are offered, what the model wants is called, and it reads the answer."""
    pytest.importorskip("openai")
    agent, *_ = programs("README.md")

    exec(compile(agent, "README.md", "exec"), {})

    offered = [each["function"]["name"] for each in asked[0]["tools"]]
    assert "count_matching_lines" in offered
    assert len(offered) == 5
    assert json.loads(asked[1]["messages"][-1]["content"])["data"] == 2
    assert capsys.readouterr().out.strip() == "There are two."


@pytest.mark.long
def test_langchain_takes_the_tools(folder: Path) -> None:
    """Where it is installed: its own validation lets our schema pass, and the call arrives."""
    pytest.importorskip("langchain_core")
    agent, langchain = programs("README.md")
    until = agent.index("client, messages")
    scope: dict = {}

    exec(
        compile(agent[:until].replace("from openai import OpenAI", ""), "README.md", "exec"), scope
    )
    exec(compile(langchain, "README.md", "exec"), scope)

    made = {each.name: each for each in scope["for_langchain"]}
    told = made["count_matching_lines"].invoke({"path": "app.log", "needle": "ERROR"})
    assert json.loads(told)["data"] == 2
    refused = made["count_matching_lines"].invoke({"path": "app.log"})
    assert "missing `needle`" in refused


def test_both_readmes_have_the_same_programs() -> None:
    """Whoever reads Chinese runs the same."""
    assert programs(READMES[0]) == programs(READMES[1])
    assert len(programs(READMES[0])) == 2
