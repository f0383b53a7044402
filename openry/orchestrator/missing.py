"""What a file names and nobody has: secrets, the workflows of big steps, overflow handlers.

And secrets that would be kept in the ledger.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from openry.config import Config
from openry.errors import NotFoundError, OpenRYError, UsageError
from openry.models import Problem
from openry.orchestrator import yaml12
from openry.orchestrator.loader import Loaded
from openry.orchestrator.lookup import find_file, resolver
from openry.orchestrator.plan import no_workflow, refs_of
from openry.orchestrator.report import Report
from openry.orchestrator.spec import OVERFLOW_WORDS
from openry.output.redact import Redactor
from openry.secretstore import SecretStore

_INSTEAD = "which would be kept in the ledger; let the step name it under `secrets:` instead"
_MASK = re.compile(r"\*\*\*(\w+)\*\*\*")


def missing_secrets(loaded: Loaded, config: Config, env: Mapping[str, str]) -> Iterator[Problem]:
    """A warning for each name under `secrets:` that is neither in `env` nor stored."""
    named = [
        (place, number, name)
        for place, step in enumerate(loaded.workflow.sub_steps if loaded.workflow else ())
        for number, name in enumerate(step.secrets)
    ]
    if not named:
        return
    known = {*env, *SecretStore(config.home).names()}
    report = Report(yaml12.compose(loaded.text, loaded.file))
    for place, number, name in named:
        if name not in known:
            said = f"the secret `{name}` is not set"
            hint = f"run `openry secret set {name}`, or export it"
            where = ("sub_steps", place, "secrets", number)
            report.add(where, said, hint, level="warning")
    yield from report.found


def missing_workflows(loaded: Loaded, config: Config) -> Iterator[Problem]:
    """Big steps whose workflow cannot be found, and what is wrong with those that can."""
    resolve = resolver(loaded, config)
    for place, ref in refs_of(loaded):
        try:
            yield from resolve(ref).problems
        except OpenRYError as error:
            yield no_workflow(loaded, place, error)


def missing_handlers(loaded: Loaded, config: Config) -> Iterator[Problem]:
    """A warning for each `on_output_overflow` that names no workflow: the digest does instead."""
    report = Report(yaml12.compose(loaded.text, loaded.file))
    for place, step in enumerate(loaded.workflow.sub_steps if loaded.workflow else ()):
        handler = step.on_output_overflow
        if not handler or handler in OVERFLOW_WORDS:
            continue
        try:
            find_file(handler, config)
        except NotFoundError as error:
            where = ("sub_steps", place, "on_output_overflow")
            said = f"`on_output_overflow`: {error}; the digest is used instead"
            report.add(where, said, level="warning")
    yield from report.found


def refuse_secrets(redactor: Redactor, plan: str, **given: Mapping[str, Any]) -> None:
    """Refuse what would be stored as it is, and replaced everywhere else.

    Args:
        plan: The text that the instance is frozen as.
        given: Values that are stored beside it, by what they are called.

    Raises:
        UsageError: A secret stands in there, naming it and the way round.
    """
    for what, values in given.items():
        for name, item in values.items():
            text = item if isinstance(item, str) else json.dumps(item, ensure_ascii=False)
            if redactor.text(text) != text:
                raise UsageError(f"{what} `{name}` holds a secret, {_INSTEAD}")
    clean = redactor.text(plan)
    if clean != plan:
        names = sorted(set(re.findall(_MASK, clean)) - set(re.findall(_MASK, plan)))
        named = ", ".join(f"`{name}`" for name in names)
        raise UsageError(f"a secret ({named}) is written into the workflow, {_INSTEAD}")
