"""`openry snapshot`: keep a folder as it is, and bring it back."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from openry.cli.output import write, write_json
from openry.cli.parser import Parser
from openry.config import load_config, make_home
from openry.ledger.db import Ledger
from openry.ledger.instances import find_instance
from openry.session.keeper import YOUNG_S, Keeper
from openry.session.tree import show


def main(words: Sequence[str]) -> int:
    given = _parser().parse_args(words)
    config = load_config()
    make_home(config)
    with Ledger(config.ledger) as ledger:
        given.act(Keeper(config, ledger), given)
    return 0


def _parser() -> Parser:
    parser = Parser("openry snapshot", description=__doc__)
    forms = parser.add_subparsers(metavar="FORM", required=True)
    form = forms.add_parser("create", help="keep a folder as it is now")
    form.add_argument("--dir", type=Path, default=Path(), metavar="DIR", help="default: here")
    form.set_defaults(act=_create)
    listed = forms.add_parser("list", help="what was kept, the newest first")
    listed.add_argument("--instance", default="", metavar="ID", help="of one instance")
    listed.set_defaults(act=_list)
    diff = forms.add_parser("diff", help="what happened from one snapshot to another")
    diff.add_argument("before", metavar="A")
    diff.add_argument("after", metavar="B")
    diff.set_defaults(act=_diff)
    restore = forms.add_parser("restore", help="make a folder what it was")
    restore.add_argument("snapshot", metavar="ID")
    restore.add_argument(
        "--to", type=Path, metavar="DIR", help="default: the folder the snapshot is of"
    )
    restore.add_argument(
        "--force", action="store_true", help="also over changes; a snapshot keeps them first"
    )
    restore.set_defaults(act=_restore)
    collect = forms.add_parser("gc", help="delete what nothing leads to, or is beyond `retention`")
    collect.add_argument("--dry-run", action="store_true", help="only say what would go")
    collect.add_argument("--all", action="store_true", help="also what is younger than an hour")
    collect.set_defaults(act=_collect)
    for each in (form, listed, diff, restore, collect):
        each.add_argument("--json", action="store_true", help="as JSON")
    return parser


def _create(keeper: Keeper, given: Namespace) -> None:
    made = keeper.keep(given.dir)
    for what, paths in (("left out (no file)", made.skipped), ("changing", made.unsteady)):
        for path in paths:
            sys.stderr.write(f"openry: {what}: `{show(path)}`\n")
    if given.json:
        about = {"files": made.files, "bytes": made.bytes, "seconds": round(made.seconds, 6)}
        write_json({"snapshot": made.id, **about})
    else:
        took = f"{made.seconds * 1000:.0f} ms"
        write(f"{made.id}  {made.files} files, {made.bytes:,} bytes, {took}\n")


def _list(keeper: Keeper, given: Namespace) -> None:
    instance = given.instance
    if instance:
        with keeper.ledger.read() as connection:
            instance = find_instance(connection, instance)
    rows = keeper.rows(instance)
    if given.json:
        named = ({"snapshot": row.snapshot_id, **asdict(row)} for row in rows)
        write_json([{k: v for k, v in row.items() if k != "snapshot_id"} for row in named])
        return
    for row in rows:
        whose = f" of {row.instance_id}/{row.step_id}" if row.instance_id else ""
        files = f"{row.files} files"
        write(f"{row.at[:19]}  {row.snapshot_id[:16]}  {files:>12}  {row.reason}{whose}")
        write(f"  {row.workspace}\n")
    if not rows:
        write("nothing was kept yet\n")


def _diff(keeper: Keeper, given: Namespace) -> None:
    changes = keeper.diff(given.before, given.after)
    if given.json:
        write_json([{"change": one.kind, "path": show(one.path)} for one in changes])
    else:
        write("".join(f"{one.kind:<8} {show(one.path)}\n" for one in changes) or "no difference\n")


def _restore(keeper: Keeper, given: Namespace) -> None:
    done = keeper.put_back(given.snapshot, given.to, force=given.force)
    if given.json:
        write_json({"snapshot": done.snapshot_id, "to": str(done.folder), "saved": done.saved})
        return
    write(f"{show(str(done.folder))} is as in {done.snapshot_id[:16]}\n")
    if done.saved:
        write(f"what it was before is kept: openry snapshot restore {done.saved[:16]}\n")


def _collect(keeper: Keeper, given: Namespace) -> None:
    most = keeper.config.retention_snapshots_bytes
    young_s = 0.0 if given.all else YOUNG_S
    freed = keeper.collect(most_bytes=most, young_s=young_s, dry_run=given.dry_run)
    if given.json:
        write_json({**asdict(freed), "dry_run": given.dry_run})
    else:
        verb = "would go" if given.dry_run else "went"
        about = f"{freed.objects} contents, {freed.bytes:,} bytes"
        write(f"{freed.snapshots} snapshots {verb}, {about}\n")
