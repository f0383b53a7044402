"""A tool's declared secrets reach it by every way in, and nothing else does."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from openry.capability.registry import own_registry
from openry.config import load_config
from openry.secretstore import SecretStore
from openry.service.desk import Desk

PROGRAM = [sys.executable, "-m", "openry"]
VALUE = "hunter2hunter2"
TOOL = """
name: shop_login
description: Says how long the shop's token is. Use it to see whether you are logged in.
command_template: [python3, -c, "import os, sys; print(len(os.environ.get(sys.argv[1], '')), os.environ.get(sys.argv[1]))", "{variable}"]
secret_env: ["{variable}"]
output_parser: text
parameters:
  variable: {type: string, default: SHOP_TOKEN, description: The variable with the token.}
examples:
  - {request: am I logged in to the shop, arguments: {}}
"""  # noqa: E501


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home" / "capabilities" / "shop"
    folder.mkdir(parents=True)
    (folder / "shop_login.yaml").write_text(TOOL)
    (tmp_path / "home").chmod(0o700)
    return tmp_path / "home"


def by_hand(home: Path, args: str = "{}", **more: str) -> str:
    env = {"PATH": os.environ["PATH"], "OPENRY_HOME": str(home), **more}
    argv = [*PROGRAM, "--call", "shop_login", "--args", args]
    told = subprocess.run(argv, env=env, cwd=home, capture_output=True, text=True, check=True)
    data = json.loads(json.loads(told.stdout)["stdout"])["data"]
    assert VALUE not in told.stdout
    return str(data).split()[0]


def test_by_hand_it_comes_from_the_store_or_the_environment(home: Path) -> None:
    """`openry secret set` is enough; the environment goes before it; the answer hides the value."""
    assert by_hand(home) == "0"

    SecretStore(home, keyring=None).set("SHOP_TOKEN", VALUE)
    assert by_hand(home) == str(len(VALUE))
    assert by_hand(home, SHOP_TOKEN="other-token") == str(len("other-token"))

    SecretStore(home, keyring=None).set("MY_TOKEN", VALUE + "x")
    assert by_hand(home, '{"variable": "MY_TOKEN"}') == str(len(VALUE) + 1)


def test_a_server_gives_what_the_tool_names_from_its_own_environment(home: Path) -> None:
    """Not what a caller names, nor what a person keeps: a caller could have it sent anywhere."""
    config = load_config(home, env={})
    SecretStore(home, keyring=None).set("STORED_TOKEN", VALUE)
    env = {"PATH": os.environ["PATH"], "SHOP_TOKEN": VALUE, "AWS_SECRET_KEY": VALUE}
    desk = Desk(config, own_registry(home), home, env=env)

    def length(**arguments: str) -> str:
        result = desk.invoke("shop_login", arguments).result
        assert result is not None
        assert VALUE not in result.to_json()
        return str(result.data).split()[0]

    assert length() == str(len(VALUE))
    assert length(variable="AWS_SECRET_KEY") == "0"
    assert length(variable="STORED_TOKEN") == "0"


def test_the_row_of_such_a_call_does_not_have_it(home: Path) -> None:
    """Neither the ledger nor its log hold the value."""
    SecretStore(home, keyring=None).set("SHOP_TOKEN", VALUE)
    by_hand(home)

    held = b"".join(file.read_bytes() for file in home.glob("openry.db*"))
    assert b"shop_login" in held
    assert VALUE.encode() not in held


def test_without_it_a_mail_tool_says_how_to_give_it(home: Path) -> None:
    """The sentence names the command that keeps a password."""
    args = json.dumps({"host": "127.0.0.1", "user": "bo", "output": "in"})
    env = {"PATH": os.environ["PATH"], "OPENRY_HOME": str(home)}
    argv = [*PROGRAM, "--call", "fetch_mail", "--args", args]
    told = subprocess.run(argv, env=env, cwd=home, capture_output=True, text=True, check=True)

    error = json.loads(json.loads(told.stdout)["stdout"])["error"]
    assert error["class"] == "auth"
    assert "openry secret set MAIL_PASSWORD" in error["message"]
