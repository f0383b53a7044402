"""Settings: flag over environment over file over default, and every mistake told at once."""

from __future__ import annotations

import re
from dataclasses import asdict, fields, replace
from pathlib import Path

import pytest

from openry.config import SETTINGS, Config, load_config
from openry.data import data_root
from openry.errors import BadFileError


def test_defaults(tmp_path: Path):
    """Nothing set: all from the table, the ledger in the home."""
    config = load_config(env={"HOME": str(tmp_path)})

    assert config.home == tmp_path / ".openry"
    assert config.ledger == str(tmp_path / ".openry" / "openry.db")
    assert config.planner_model == config.model == "local/smollm2"
    assert set(config.origins.values()) == {"default"}


def test_each_source_beats_the_next(tmp_path: Path):
    """And says so."""
    (tmp_path / "config.yaml").write_text("model: a/file\ntimeout: {default: 7, kill_after: 1.5}\n")
    env = {"OPENRY_HOME": "/elsewhere", "OPENRY_MODEL": "an/environment", "HOME": "/"}

    config = load_config(tmp_path, env=env)

    assert (config.home, config.origins["home_dir"]) == (tmp_path, "flag")
    assert (config.model, config.origins["model"]) == ("an/environment", "environment")
    assert (config.timeout_default_s, config.origins["timeout_default_s"]) == (7.0, "file")
    assert config.kill_after_s == 1.5


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("timeout: {default: true}", "`timeout.default` must be seconds, got `True`"),
        ("timeout: {default: -1}", "more than 0 seconds"),
        ("modle: x", "unknown setting `modle` (did you mean `model`?)"),
        ("background: maybe", "must be one of `kill`, `keep`"),
        ("redact: {patterns: ['(']}", "regular expression"),
        ("redact: {literals: x}", "must be a list of texts"),
        ("- a", "must be a map"),
        ("a: [", "line 2"),
        ("output: {answer_limit_bytes: 0}", "at least 1"),
    ],
)
def test_mistakes_in_the_file_are_sentences(tmp_path: Path, text: str, said: str):
    """Each with the file, the key and what it must be."""
    (tmp_path / "config.yaml").write_text(text + "\n")

    with pytest.raises(BadFileError) as caught:
        load_config(tmp_path, env={})

    assert said in str(caught.value)
    assert str(tmp_path) in str(caught.value)


def test_every_mistake_is_told_at_once(tmp_path: Path):
    """Not one per try."""
    (tmp_path / "config.yaml").write_text("a: 1\nb: 2\n")

    with pytest.raises(BadFileError) as caught:
        load_config(tmp_path, env={})

    assert len(caught.value.problems) == 2


def test_an_empty_file_is_no_mistake(tmp_path: Path):
    """Nor one with a byte order mark."""
    (tmp_path / "config.yaml").write_text("\ufeff# nothing yet\n", "utf-8")

    assert load_config(tmp_path, env={}).model == "local/smollm2"


def test_each_setting_has_a_field(tmp_path: Path):
    """The table and the value do not drift apart."""
    named = {field for field, _, _, _ in SETTINGS}

    assert named == {field.name for field in fields(Config)} - {"origins"}
    assert replace(load_config(tmp_path, env={}), model="x").model == "x"
    assert asdict(load_config(tmp_path, env={}))["background"] == "kill"


def test_the_template_says_every_setting_and_its_default(tmp_path: Path):
    """Each commented line, taken as it stands, is the default; no setting is left out."""
    text = (data_root() / "templates/config.yaml").read_text("utf-8")
    lines = [line.removeprefix("# ") for line in text.splitlines()]
    settings = "\n".join(line for line in lines if re.match(r"\s*[a-z_]+:", line))
    (tmp_path / "config.yaml").write_text(settings)

    said, default = load_config(tmp_path, env={}), load_config(tmp_path / "none", env={})

    for field, key, _, _ in SETTINGS:
        if key:
            assert said.origins[field] == "file", f"`{key}` is not in the template"
            assert getattr(said, field) == getattr(default, field)
