"""`openry trust`: let a project's `.openry` supply workflows, policies and capabilities by name."""

from __future__ import annotations

from collections.abc import Sequence

from openry.cli.output import write, write_json
from openry.cli.parser import Parser
from openry.config import load_config
from openry.errors import UsageError
from openry.project import KINDS, Project, find_project, forget, trust


def main(words: Sequence[str]) -> int:
    parser = Parser("openry trust", description=__doc__)
    parser.add_argument("folder", nargs="?", default=".", metavar="DIR", help="default: here")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--forget", action="store_true", help="trust it no longer")
    how.add_argument("--show", action="store_true", help="say how it stands; record nothing")
    parser.add_argument("--json", action="store_true", help="as JSON")
    given = parser.parse_args(words)
    if not given.folder:
        raise UsageError("DIR is empty; see openry trust --help")
    config = load_config()
    if given.show:
        return _show(find_project(given.folder, config.home), as_json=given.json)
    before = (forget if given.forget else trust)(given.folder, config.home)
    now = find_project(given.folder, config.home)
    if given.json:
        write_json(_as_data(now))
    elif given.forget:
        write(f"`{before.folder}` is trusted no longer\n")
    else:
        write(_told(before))
    return 0


def _told(before: Project) -> str:
    """What was recorded, file by file where something is different since the last time."""
    if before.trusted:
        return f"`{before.folder}` is trusted as it is; nothing has changed\n"
    lines = [f"`{before.folder}` is trusted from now on, as long as its files stay as they are"]
    lines += [f"  {change}" for change in before.changes] or ["  it supplies nothing yet"]
    if ignored := _ignored(before):
        lines += [f"  never read: {', '.join(ignored)}"]
    return "\n".join(lines) + "\n"


def _ignored(project: Project) -> list[str]:
    """What lies in the folder and is never read: settings, above all."""
    return sorted(path.name for path in project.folder.iterdir() if path.name not in KINDS)


def _show(project: Project | None, *, as_json: bool) -> int:
    if as_json:
        write_json(_as_data(project))
    elif project is None:
        write("no project folder here or above\n")
    else:
        write(f"{project.complaint or f'`{project.folder}` is trusted'}\n")
        write("".join(f"  {change}\n" for change in project.changes))
    return 0 if project is None or project.trusted else 1


def _as_data(project: Project | None) -> dict[str, object]:
    if project is None:
        return {"folder": None, "trusted": False, "files": {}, "changes": [], "problem": ""}
    return {
        "folder": str(project.folder),
        "trusted": project.trusted,
        "files": dict(project.files),
        "changes": list(project.changes),
        "problem": project.problem,
    }
