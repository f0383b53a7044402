"""Adapters: how an agent program that is not ours is started. Data, one YAML file each.

Shipped ones are in `templates/agents/`, a person's own in OPENRY_HOME/agents. A workflow names
one; it cannot bring a command of its own.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from openry.capability.registry import read_mapping
from openry.data import data_root
from openry.errors import BadFileError, NotFoundError, UsageError

Texts = tuple[str, ...]
#: What a word of a command may hold, and nothing else in braces.
PLACES = ("{prompt}", "{prompt_file}", "{model}", "{workspace}", "{max_turns}", "{run_id}")


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Needs(_Strict):
    """What the agent's own runtime needs beside the step's sandbox.

    Attributes:
        programs: Found by their names on our PATH, and the only others on the agent's.
        hosts: Its API; `*.example.com`, `example.com:8443`.
        network: All of the network, for programs that go by no proxy.
    """

    programs: Texts = ()
    read: Texts = ()
    write: Texts = ()
    hosts: Texts = ()
    network: bool = False


class Adapter(_Strict):
    """One agent program.

    Attributes:
        program: Its name on our PATH, or a path from the adapter's own file.
        install: How to get it, for a sentence.
        command: What follows the program.
        prompt: How it gets its prompt: on standard input, as an argument, or as a file.
        with_model: Added when the step names a model.
        with_max_turns: Added when the step limits turns.
        env: Set for the program.
        pass_env: Passed on from our environment, where they are set: keys, mostly.
        linger_s: How long it may go on after it reported how its task stands.
        tried: With what it was tried; empty says that it was not.
    """

    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]*$")]
    description: str
    program: str
    install: str
    command: Texts = ()
    prompt: Literal["stdin", "argument", "file"] = "stdin"
    with_model: Texts = ()
    with_max_turns: Texts = ()
    env: Mapping[str, str] = Field(default_factory=dict)
    pass_env: Texts = ()
    needs: Needs = Needs()
    linger_s: Annotated[float, Field(ge=0)] = 20.0
    tried: str = ""
    file: Path = Path()

    @model_validator(mode="after")
    def _hands_over_its_prompt(self) -> Self:
        words = " ".join(self.command)
        wanted = {"stdin": "", "argument": "{prompt}", "file": "{prompt_file}"}[self.prompt]
        if wanted not in words:
            raise ValueError(f"`prompt: {self.prompt}` needs `{wanted}` in `command`")
        return self

    def argv(self, program: str, values: Mapping[str, str]) -> tuple[str, ...]:
        """Program and arguments; a word is one argument whatever is put into it."""
        words = [*self.command]
        if values.get("model"):
            words += self.with_model
        if values.get("max_turns"):
            words += self.with_max_turns
        return (program, *(_filled(word, values) for word in words))

    def find(self) -> str:
        """The program's full path, links followed: a sandbox shows what they lead to.

        Raises:
            UsageError: It is not installed.
        """
        if "/" in self.program:
            path = str((self.file.parent / self.program).resolve())
            found = path if os.access(path, os.X_OK) else None
        else:
            found = shutil.which(self.program)
        if found is None:
            raise UsageError(
                f"agent `{self.name}`: `{self.program}` is not installed; {self.install}"
            )
        return os.path.realpath(found)


def _filled(word: str, values: Mapping[str, str]) -> str:
    """The word with its places filled; what is put in is not looked at again.

    >>> _filled("{prompt}", {"prompt": "say {model}", "model": "m"})
    'say {model}'
    """
    done, rest = "", word
    while rest:
        at, place = min(
            ((rest.index(each), each) for each in PLACES if each in rest), default=(-1, "")
        )
        if at < 0:
            return done + rest
        done += rest[:at] + values.get(place.strip("{}"), "")
        rest = rest[at + len(place) :]
    return done


def adapter_named(name: str, home: Path) -> Adapter:
    """The installed adapter of that name; a shipped name means the shipped one.

    Raises:
        NotFoundError: There is none.
        BadFileError: It does not say what it must; every problem at once.
    """
    found = dict(_files(home))
    if name not in found:
        near = get_close_matches(name, found, 1)
        hint = f"did you mean `{near[0]}`?" if near else f"there are {', '.join(sorted(found))}"
        raise NotFoundError(f"there is no agent adapter `{name}` ({hint})")
    return read_adapter(found[name])


def is_adapter(name: str, home: Path) -> bool:
    return bool(name) and name in dict(_files(home))


def installed_adapters(home: Path) -> tuple[Adapter, ...]:
    """Every adapter, by name."""
    return tuple(read_adapter(path) for _, path in sorted(dict(_files(home)).items()))


def read_adapter(path: Path) -> Adapter:
    """One adapter from its file.

    Raises:
        BadFileError: It does not say what it must; every problem at once.
    """
    data = dict(read_mapping(path))
    try:
        made = Adapter.model_validate({**data, "file": path})
    except ValidationError as error:
        raise BadFileError(f"{path} is no adapter", tuple(_problems(path, error))) from error
    if made.name != path.stem:
        raise BadFileError(f"{path}: `name` is `{made.name}`, the file's is `{path.stem}`")
    return made


def _problems(path: Path, error: ValidationError) -> Iterator[str]:
    for each in error.errors(include_url=False, include_input=False):
        place = ".".join(str(part) for part in each["loc"]) or "the adapter"
        said = each["msg"].removeprefix("Value error, ")
        if each["type"] == "extra_forbidden":
            near = get_close_matches(str(each["loc"][-1]), Adapter.model_fields, 1)
            said = "unknown key" + (f" (did you mean `{near[0]}`?)" if near else "")
        yield f"{path}: `{place}`: {said}"


def _files(home: Path) -> Iterator[tuple[str, Path]]:
    for folder in (home / "agents", data_root() / "templates" / "agents"):
        for path in sorted(folder.glob("*.yaml")):
            yield path.stem, path


# --- what a program is made of ----------------------------------------------------------------


def places_of(program: str) -> tuple[str, ...]:
    """What must be seen for a program to start: itself, and the folder of what it leads to.

    A folder of a person's own is never shown whole for a program's sake.
    """
    real = os.path.realpath(program)
    places = {program, real}
    folder = Path(real).parent
    if "node_modules" in folder.parts:
        whole = folder.parts[: folder.parts.index("node_modules") + 1]
        places.add(str(Path(*whole)))
    elif folder.name == "bin":
        prefix = folder.parent
        environment = ("bin", "lib", "lib64", "libexec", "pyvenv.cfg")
        places |= {str(prefix / name) for name in environment if (prefix / name).exists()}
    elif not _is_personal(folder):
        places.add(str(folder))
    python = os.path.realpath(Path(real).parent / "python")
    if python not in (real, f"{Path(real).parent}/python"):  # an environment's own leads elsewhere
        places |= set(places_of(python))
    return tuple(sorted(place for place in places if not place.startswith("/usr/")))


def _is_personal(folder: Path) -> bool:
    home = Path.home()
    return folder == home or folder in home.parents


def expanded(paths: Sequence[str]) -> tuple[str, ...]:
    """Paths of this machine, those that are there."""
    full = [os.path.expanduser(path) for path in paths]  # noqa: PTH111  # compared as text
    return tuple(path for path in full if os.path.lexists(path))


def shown(adapter: Adapter) -> dict[str, Any]:
    """What a person wants to know of it."""
    return {
        "name": adapter.name,
        "description": adapter.description,
        "program": adapter.program,
        "tried": adapter.tried or "no",
    }
