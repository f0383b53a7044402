"""`openry session`: a task's whole life, from its start to its end, here or elsewhere."""

from __future__ import annotations

import getpass
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from openry.cli.output import write, write_json, write_table
from openry.cli.parser import Parser
from openry.config import Config, load_config, make_home
from openry.ledger.db import Ledger
from openry.session import archive, lifecycle
from openry.session.archive import Moved
from openry.session.lifecycle import Session

_STATES = tuple(dict.fromkeys(word for pair in lifecycle.STATES.values() for word in pair if word))
_GOES_ON = "`openry-orchestrator run` goes on with it"


def main(words: Sequence[str]) -> int:
    given = _parser().parse_args(words)
    config = load_config()
    make_home(config)
    with Ledger(config.ledger) as ledger:
        given.act(config, ledger, given)
    return 0


def _parser() -> Parser:
    parser = Parser("openry session", description=__doc__)
    forms = parser.add_subparsers(metavar="FORM", required=True)
    listed = forms.add_parser("list", help="the newest first")
    listed.add_argument(
        "--state",
        default="",
        choices=_STATES,
        help="only these",
    )
    listed.set_defaults(act=_list)
    show = forms.add_parser("show", help="one of them, whole")
    show.set_defaults(act=_show)
    suspend = forms.add_parser("suspend", help="let nothing more of it begin")
    suspend.set_defaults(act=_suspend)
    resume = forms.add_parser("resume", help="let it go on")
    resume.add_argument("--force", action="store_true", help="also if it may go on elsewhere")
    resume.set_defaults(act=_resume)
    out = forms.add_parser("export", help="all of it in one file; it is suspended here")
    out.set_defaults(act=_export)
    into = forms.add_parser("import", help="bring such a file in; it waits for resume")
    into.add_argument("file", type=Path, metavar="FILE")
    into.add_argument("--to", type=Path, metavar="DIR", help="its workspace: new, or empty")
    into.set_defaults(act=_import)
    end = forms.add_parser("end", help="end it: what runs is braked, what is left of it is ended")
    end.set_defaults(act=_end)
    sweep = forms.add_parser("sweep", help="end what still runs of those that ended or are idle")
    sweep.set_defaults(act=_sweep)
    for each in (show, suspend, resume, out, end):
        each.add_argument("session", metavar="ID")
    out.add_argument("file", type=Path, metavar="FILE")
    for each in (listed, show, suspend, resume, out, into, end, sweep):
        each.add_argument("--json", action="store_true", help="as JSON")
    return parser


def _list(config: Config, ledger: Ledger, given: Namespace) -> None:
    with ledger.read() as connection:
        found = lifecycle.list_sessions(connection, state=given.state)
    if given.json:
        names = lifecycle.GLANCED
        write_json([{name: getattr(one, name) for name in names} for one in found])
    elif found:
        write_table(
            (one.session_id, one.outcome or one.state, one.workflow, one.step, one.created_at[:19],
             " ".join(one.reason.split())[:80])
            for one in found
        )  # fmt: skip
    else:
        write("there is no session yet\n")


def _show(config: Config, ledger: Ledger, given: Namespace) -> None:
    with ledger.read() as connection:
        _tell(lifecycle.show_session(connection, given.session), given)


def _suspend(config: Config, ledger: Ledger, given: Namespace) -> None:
    found = lifecycle.suspend(ledger, given.session, by=getpass.getuser())
    under_way = f"; {found.at_work[0]} goes on to its end" if found.at_work else ""
    _tell(found, given, f"{found.session_id}: suspended{under_way}")


def _resume(config: Config, ledger: Ledger, given: Namespace) -> None:
    found = lifecycle.resume(ledger, given.session, by=getpass.getuser(), force=given.force)
    _tell(found, given, f"{found.session_id}: running; {_GOES_ON}")


def _end(config: Config, ledger: Ledger, given: Namespace) -> None:
    found = lifecycle.end(ledger, given.session, by=getpass.getuser())
    ended = found.outcome or "asked to end; `openry-orchestrator run` ends it"
    _tell(found, given, f"{found.session_id}: {ended}")


def _export(config: Config, ledger: Ledger, given: Namespace) -> None:
    done = archive.export_session(config, ledger, given.session, given.file)
    _tell_moved(done, given, f"{given.file}: {done.session_id}, {_amount(done)}")


def _import(config: Config, ledger: Ledger, given: Namespace) -> None:
    done = archive.import_session(config, ledger, given.file, given.to)
    waits = "" if done.state == "ended" else f"; openry session resume {done.session_id}"
    said = f"{done.session_id}: {done.state}, in {done.workspace}, {_amount(done)}{waits}"
    _tell_moved(done, given, said)


def _sweep(config: Config, ledger: Ledger, given: Namespace) -> None:
    ended = lifecycle.sweep(config, ledger)
    if given.json:
        write_json({"processes": ended})
    else:
        write(f"{ended} processes ended\n")


def _amount(done: Moved) -> str:
    return f"{done.rows} rows, {done.snapshots} snapshots, {done.bytes:,} bytes"


def _tell_moved(done: Moved, given: Namespace, said: str) -> None:
    if given.json:
        write_json(asdict(done))
    else:
        write(said + "\n")


def _tell(found: Session, given: Namespace, said: str = "") -> None:
    if given.json:
        write_json(asdict(found))
    elif said:
        write(said + "\n")
    else:
        write(_whole(found))


def _whole(found: Session) -> str:
    lines = [
        f"session    {found.session_id}  {found.state} {found.outcome}".rstrip(),
        f"workflow   {found.workflow}",
        f"workspace  {found.workspace}",
        f"from       {found.created_at} to {found.ended_at or 'now'}",
        f"spent      {found.tokens} tokens, {found.cost_usd:.4f} USD",
    ]
    lines += [f"reason     {found.reason}"] if found.reason else []
    for step in found.steps:
        item = f"[{step['item']}]" if step["item"] else ""
        lines.append(f"step       {step['step']}{item}  {step['state']} ({step['attempt']})")
    lines += [f"at work    {one}" for one in found.at_work]
    lines += [f"waits for  {one}" for one in found.waits_for]
    lines += [f"snapshots  {len(found.snapshots)}"] if found.snapshots else []
    lines += [f"head       {found.head}"] if found.head else []
    return "\n".join(lines) + "\n"
