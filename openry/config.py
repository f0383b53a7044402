"""Settings and where each came from: flag > environment > file > default.

On the forwarder's path: nothing heavy is imported unless there is a `config.yaml` to read.
"""

from __future__ import annotations

import os

from openry.errors import BadFileError, StorageError, UsageError
from openry.models.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path
    from typing import Any

_MIB = 1024 * 1024


@value
class Config:
    """Every setting. `origins` says for each field: `flag`, `environment`, `file` or `default`.

    Attributes:
        home_dir: OpenRY's own folder; made (0700) by whoever first writes into it.
        ledger: Path of a SQLite file, or a SQLAlchemy URL.
        api_base: Address of an OpenAI-compatible server for models named `openai/…`.
        allow_unpriced: Call models whose price is not known; they count in tokens, not in money.
        shell: Program that runs command text; empty means the platform's.
        kill_after_s: Seconds between SIGTERM and SIGKILL.
        drain_s: How long a background process may hold the answer after the shell ended.
        background: What becomes of background processes when the shell has ended: `kill`, `keep`.
        answer_limit_bytes: Largest standard output or error in an answer; the rest is kept in a
            file.
        spill_limit_bytes: Largest such file; what is beyond it is counted and dropped.
        agent_sandbox: What surrounds an agent that is not ours: `auto`, `bubblewrap`, `none`.
        policy: Command policy of what is done by hand; workflows name their own.
        redact: Further literals never to be shown or stored.
        redact_patterns: The same as regular expressions.
        redact_except: Names of shapes or variables that are not secret here.
        snapshot_ignore: Names that are no part of a snapshot, at whatever depth.
        snapshot_clean: Folders of a workspace that are emptied before it is recorded.
        snapshot_every: Actions of an agent's step between two snapshots; 0 for none.
        anchor_command: Shell command that is given the ledger's newest head on its input.
        retention_runs_s: Age at which what ended is forgotten; 0 keeps it. Spills and snapshots:
            the size to which the oldest are deleted; 0 keeps all.
        session_idle_minutes: A suspended session's sandboxes are given back after that long.
    """

    home_dir: str
    ledger: str
    model: str = "local/smollm2"
    planner_model: str = ""
    local_model: str = ""
    api_base: str = ""
    allow_unpriced: bool = False
    shell: str = ""
    timeout_default_s: float = 600.0
    kill_after_s: float = 5.0
    drain_s: float = 0.5
    background: str = "kill"
    brake_grace_s: float = 30.0
    answer_limit_bytes: int = _MIB
    spill_limit_bytes: int = 1024 * _MIB
    default_max_output_tokens: int = 8000
    sandbox: str = "auto"
    agent_sandbox: str = "auto"
    policy: str = "permissive"
    redact: tuple[str, ...] = ()
    redact_patterns: tuple[str, ...] = ()
    redact_except: tuple[str, ...] = ()
    snapshot_ignore: tuple[str, ...] = (
        "__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache",
    )  # fmt: skip
    snapshot_clean: tuple[str, ...] = ()
    snapshot_every: int = 5
    anchor_command: str = ""
    retention_runs_s: float = 0.0
    retention_spills_bytes: int = 0
    retention_snapshots_bytes: int = 0
    session_idle_minutes: float = 60.0
    context_summary_model: str = ""
    loop_same: int = 3
    loop_cycle_length: int = 4
    loop_cycle_repeats: int = 3
    loop_share: float = 0.7
    loop_window: int = 20
    origins: Mapping[str, str] = {}

    @property
    def home(self) -> Path:
        from pathlib import Path

        return Path(self.home_dir)


def _text(given: Any) -> str:
    if not isinstance(given, str):
        raise ValueError("a text")
    return given


def _texts(given: Any) -> tuple[str, ...]:
    if not isinstance(given, list) or not all(isinstance(one, str) and one for one in given):
        raise ValueError("a list of texts")
    return tuple(given)


def _expressions(given: Any) -> tuple[str, ...]:
    import re

    for one in _texts(given):
        try:
            re.compile(one.encode())
        except re.error as error:
            raise ValueError(f"a list of regular expressions (`{one}`: {error})") from error
    return tuple(given)


def _seconds(given: Any) -> float:
    if isinstance(given, bool) or not isinstance(given, int | float | str):
        raise ValueError("seconds")
    try:
        seconds = float(given)
    except ValueError:
        raise ValueError("seconds") from None
    if not 0 < seconds < 1e9:
        raise ValueError("more than 0 seconds")
    return seconds


def _age(given: Any) -> float:
    """`30d` in seconds; 0 for never."""
    if str(given) == "0":
        return 0.0
    text, units = str(given), {"m": 60, "h": 3600, "d": 86_400, "w": 604_800}
    if text[-1:] not in units or not text[:-1].isdecimal():
        raise ValueError("an age such as `30d`, `12h` or `4w`, or 0")
    return float(int(text[:-1]) * units[text[-1]])


def _size(given: Any) -> int:
    """`2 GiB` in bytes; 0 for no limit."""
    text = str(given).replace(" ", "")
    number = text.rstrip("KMGTiB")
    units = {"": 1, "B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
    try:
        return int(float(number) * units[text[len(number) :]])
    except (ValueError, KeyError, OverflowError):
        raise ValueError("a size such as `500 MiB` or `2 GiB`, or 0") from None


def _part(given: Any) -> float:
    if isinstance(given, bool) or not isinstance(given, int | float) or not 0 < given <= 1:
        raise ValueError("a part of the whole: more than 0, at most 1")
    return float(given)


def _count_or_none(given: Any) -> int:
    return 0 if given == 0 and not isinstance(given, bool) else _count(given)


def _count(given: Any) -> int:
    if isinstance(given, bool) or not isinstance(given, int) or given < 1:
        raise ValueError("a whole number of at least 1")
    return given


def _switch(given: Any) -> bool:
    words = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}
    if str(given).lower() not in words:
        raise ValueError("`true` or `false`")
    return words[str(given).lower()]


def _one_of(*words: str) -> Callable[[Any], str]:
    def check(given: Any) -> str:
        if given not in words:
            raise ValueError("one of " + ", ".join(f"`{word}`" for word in words))
        return str(given)

    return check


#: Field, its key in config.yaml, its environment variable, what it must be.
SETTINGS: tuple[tuple[str, str, str, Callable[[Any], Any]], ...] = (
    ("home_dir", "", "OPENRY_HOME", _text),
    ("ledger", "", "OPENRY_DB", _text),
    ("model", "model", "OPENRY_MODEL", _text),
    ("planner_model", "planner_model", "OPENRY_PLANNER_MODEL", _text),
    ("local_model", "local_model", "OPENRY_LOCAL_MODEL", _text),
    ("api_base", "api_base", "OPENRY_API_BASE", _text),
    ("allow_unpriced", "allow_unpriced", "OPENRY_ALLOW_UNPRICED", _switch),
    ("shell", "shell.program", "", _text),
    ("timeout_default_s", "timeout.default", "", _seconds),
    ("kill_after_s", "timeout.kill_after", "", _seconds),
    ("drain_s", "timeout.drain", "", _seconds),
    ("background", "background", "", _one_of("kill", "keep")),
    ("brake_grace_s", "brake.grace_seconds", "", _seconds),
    ("answer_limit_bytes", "output.answer_limit_bytes", "", _count),
    ("spill_limit_bytes", "output.spill_limit_bytes", "", _count),
    ("default_max_output_tokens", "output.default_max_output_tokens", "", _count),
    ("sandbox", "sandbox", "", _one_of("auto", "bubblewrap", "landlock", "none")),
    ("agent_sandbox", "agent_sandbox", "", _one_of("auto", "bubblewrap", "none")),
    ("policy", "policy", "", _text),
    ("redact", "redact.literals", "", _texts),
    ("redact_patterns", "redact.patterns", "", _expressions),
    ("redact_except", "redact.except", "", _texts),
    ("snapshot_ignore", "snapshot.ignore", "", _texts),
    ("snapshot_clean", "snapshot.clean", "", _texts),
    ("snapshot_every", "snapshot.every", "", _count_or_none),
    ("anchor_command", "ledger.anchor_command", "", _text),
    ("retention_runs_s", "retention.runs", "", _age),
    ("retention_spills_bytes", "retention.spills", "", _size),
    ("retention_snapshots_bytes", "retention.snapshots", "", _size),
    ("session_idle_minutes", "session.idle_minutes", "", _seconds),
    ("context_summary_model", "context.summary_model", "", _text),
    ("loop_same", "loops.same", "", _count),
    ("loop_cycle_length", "loops.cycle_length", "", _count),
    ("loop_cycle_repeats", "loops.cycle_repeats", "", _count),
    ("loop_share", "loops.share", "", _part),
    ("loop_window", "loops.window", "", _count),
)


def load_config(home: Path | str | None = None, *, env: Mapping[str, str] = os.environ) -> Config:
    """The settings in force.

    Raises:
        BadFileError: config.yaml is not what it must be; every problem at once.
        UsageError: An environment variable is not what it must be.
    """
    found, origins = _from_environment(home, env)
    path = os.path.join(found["home_dir"], "config.yaml")
    for field, setting in _from_file(path).items() if os.path.exists(path) else ():
        if field not in found:
            found[field], origins[field] = setting, "file"
    found.setdefault("ledger", os.path.join(found["home_dir"], "openry.db"))
    found.setdefault("planner_model", found.get("model", Config._defaults["model"]))  # type: ignore[attr-defined]
    return Config(**found, origins=origins)


def make_home(config: Config) -> None:
    """Make OpenRY's folder, closed to others, when the ledger is to be in it.

    Raises:
        StorageError: It cannot be made.
    """
    if config.origins.get("ledger") != "default":
        return
    try:
        os.makedirs(config.home_dir, 0o700, exist_ok=True)
    except OSError as error:
        raise StorageError(
            f"`{config.home_dir}` cannot be made: {error.strerror}; set OPENRY_HOME elsewhere"
        ) from error


def _from_environment(
    home: Path | str | None, env: Mapping[str, str]
) -> tuple[dict[str, Any], dict[str, str]]:
    found: dict[str, Any] = {}
    origins = {field: "default" for field, _, _, _ in SETTINGS}
    for field, _, variable, check in SETTINGS:
        if variable and env.get(variable):
            found[field], origins[field] = _variable(variable, env[variable], check), "environment"
    if home is not None:
        found["home_dir"], origins["home_dir"] = os.fspath(home), "flag"
    found.setdefault("home_dir", os.path.join(_user_home(env), ".openry"))
    found["home_dir"] = os.path.abspath(found["home_dir"])
    return found, origins


def _variable(name: str, text: str, check: Callable[[Any], Any]) -> Any:
    try:
        return check(text)
    except ValueError as error:
        raise UsageError(f"{name} must be {error}, got `{text}`") from None


def _user_home(env: Mapping[str, str]) -> str:
    return env.get("HOME") or os.path.expanduser("~")


def _from_file(path: str) -> dict[str, Any]:
    import yaml

    try:
        with open(path, encoding="utf-8-sig") as file:
            data = yaml.safe_load(file)
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise BadFileError(f"{path}: {' '.join(str(error).split())}") from error
    if data is None:
        return {}
    if not isinstance(data, dict):
        raise BadFileError(f"{path}: must be a map of settings, e.g. `model: local/smollm2`")
    return _checked(path, dict(_flat(data)))


def _flat(data: Mapping[Any, Any], before: str = "") -> list[tuple[str, Any]]:
    """`{timeout: {default: 5}}` as `timeout.default`, 5."""
    pairs: list[tuple[str, Any]] = []
    for key, item in data.items():
        name = f"{before}{key}"
        pairs += _flat(item, f"{name}.") if isinstance(item, dict) else [(name, item)]
    return pairs


def _checked(path: str, given: Mapping[str, Any]) -> dict[str, Any]:
    known = {key: (field, check) for field, key, _, check in SETTINGS if key}
    found: dict[str, Any] = {}
    problems = []
    for key, item in given.items():
        if key not in known:
            problems.append(f"{path}: unknown setting `{key}`{_meant(key, known)}")
            continue
        field, check = known[key]
        try:
            found[field] = check(item)
        except ValueError as error:
            problems.append(f"{path}: `{key}` must be {error}, got `{item}`")
    if problems:
        raise BadFileError("", tuple(problems))
    return found


def _meant(key: str, known: Mapping[str, object]) -> str:
    from openry.texts import bracketed, did_you_mean

    return bracketed(did_you_mean(key, known))
