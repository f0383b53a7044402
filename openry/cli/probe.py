"""`openry probe`: does the sandbox hold on this machine? Each act with its control run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from openry.cli.output import write, write_json
from openry.cli.parser import Parser
from openry.errors import UsageError
from openry.models import SandboxSpec
from openry.sandbox.cgroup import shown_limits
from openry.sandbox.hosts import HOST_HINT, is_pattern
from openry.sandbox.probe import Act, probe


def main(words: Sequence[str]) -> int:
    parser = Parser("openry probe", description=__doc__)
    parser.add_argument(
        "--backend", default="auto", choices=("auto", "bubblewrap", "landlock", "seatbelt", "none"),
        help="auto (default), bubblewrap, landlock",
    )  # fmt: skip
    parser.add_argument("--host", action="append", default=[], help="with a proxy to this host")
    parser.add_argument("--network", action="store_true", help="with the host's network")
    parser.add_argument("--json", action="store_true", help="as JSON")
    given = parser.parse_args(words)
    for host in given.host:
        if not is_pattern(host):
            raise UsageError(f"--host `{host}` is no host; {HOST_HINT}")
    acts = probe(SandboxSpec(given.backend, network=given.network, hosts=tuple(given.host)))
    if given.json:
        write_json([{**asdict(act), "surprise": act.surprise} for act in acts])
    else:
        for act in acts:
            outside, inside = ("done" if done else "refused" for done in (act.outside, act.inside))
            mark = "FAIL" if act.surprise else "ok  "
            note = act.surprise or ("" if act.outside else "only root may do it outside")
            line = f"{mark}  {act.name:<10} outside: {outside:<8} inside: {inside:<8} {note}"
            write(f"{line.rstrip()}\n")
        write(f"{shown_limits()}\n{_verdict(acts)}\n")
    return 125 if any(act.surprise for act in acts) else 0


def _verdict(acts: Sequence[Act]) -> str:
    if surprises := sum(bool(act.surprise) for act in acts):
        return f"it does NOT hold: {surprises} of {len(acts)} are not as they should be"
    return "it holds: what could be done outside was refused inside, but for writing the workspace"
