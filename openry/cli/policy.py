"""`openry policy explain|test`: what a policy says of a command, without running it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from openry.cli.folders import check_folder
from openry.cli.output import write, write_json
from openry.cli.parser import Parser
from openry.config import load_config
from openry.errors import UsageError
from openry.policy import load_policy
from openry.policy.commands import explain, test_file
from openry.project import places


def main(words: Sequence[str]) -> int:
    parser = Parser("openry policy", description=__doc__)
    forms = parser.add_subparsers(dest="form", required=True)
    told = forms.add_parser("explain", help="the verdict on a command, part by part")
    told.add_argument("command", metavar="CMD")
    told.add_argument("--policy", default="moderate", help="a name or a file (default: moderate)")
    told.add_argument("--cwd", default="", help="where it would run; the workspace too")
    told.add_argument("--json", action="store_true", help="as JSON")
    tried = forms.add_parser("test", help="load a policy file and run its own tests")
    tried.add_argument("file", metavar="FILE")
    given = parser.parse_args(words)
    if given.form == "test":
        write(f"{test_file(given.file)}\n")
        return 0
    if not given.command.strip():
        raise UsageError("CMD is empty; give the command in quotes, e.g. 'ls | wc -l'")
    if given.cwd:
        check_folder(given.cwd, "--cwd")
    known = load_policy(given.policy, folders=_folders(given.cwd))
    found = explain(given.command, known, cwd=given.cwd)
    if given.json:
        write_json(found)
        return 0
    write(f"{found['verdict']}: {found['reason']}\n")
    for part in found["parts"]:
        write(f"  {part['verdict']:<8} {' '.join(part['argv'])}  ({part['rule']})\n")
    if found["instead"]:
        write(f"allowed instead: {found['instead']}\n")
    return 0


def _folders(cwd: str) -> tuple[Path, ...]:
    """Where policies of a name are looked for, after the shipped ones."""
    return places("policies", load_config().home, cwd or ".")
