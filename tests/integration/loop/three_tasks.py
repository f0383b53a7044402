"""Three chores of several steps: files made by seed, a planner's answers, and a hidden checker.

The planner is scripted: it drafts with mistakes as capable models make them, and mends what the
loop shows it. Everything else is real.
"""

# ruff: noqa: E501  # commands and sentences stand whole, as they are run and read
from __future__ import annotations

import csv
import json
import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Chore:
    """A task with all that is needed to try it.

    Attributes:
        make: Fills the folder; the same seed gives the same files.
        replies: What the planner answers: a draft, then edits, one answer a question.
        wrong: What is wrong with the results in a folder; empty when nothing is. The loop never
            sees it.
    """

    name: str
    task: str
    make: Callable[[Path, random.Random], None]
    accept: tuple[dict[str, Any], ...]
    replies: tuple[dict[str, Any], ...]
    wrong: Callable[[Path], str]


def _command(run: str) -> dict[str, Any]:
    return {"type": "command", "run": run}


def _shell(name: str, command: str, *validation: dict[str, Any]) -> dict[str, Any]:
    rules = {"validation": list(validation)} if validation else {}
    return {"id": name, "kind": "shell", "command": command, **rules}


def _mend(step: str, command: str, why: str) -> dict[str, Any]:
    return {"edits": [{"op": "to_shell", "step": step, "command": command, "why": why}]}


# --- mail triage -----------------------------------------------------------------------------

_SUBJECTS = ("Lunch", "Invoice, March", "Minutes, and more", "Re: offer", "Photos")
_BODIES = ("See you there.", "Please answer asap.", "The deadline is Friday.", "Nothing new.")


def make_mails(folder: Path, dice: random.Random) -> None:
    (folder / "mails").mkdir()
    for number in range(1, 10):
        subject, body = dice.choice(_SUBJECTS), dice.choice(_BODIES)
        lines = [f"From: p{number}@example.org", f"Subject: {subject}"]
        if number % 3 == 0:
            lines.append("List-Unsubscribe: <mailto:u@example.org>")
        if number in (2, 7):
            lines[1] = f"Subject: URGENT: {subject}"
        (folder / "mails" / f"m{number}.eml").write_text("\n".join([*lines, "", body, ""]))


def wrong_mails(folder: Path) -> str:
    classes = {}
    for path in (folder / "mails").glob("*.eml"):
        head, _, body = path.read_text().partition("\n\n")
        subject = next(line for line in head.splitlines() if line.startswith("Subject:"))
        urgent = "URGENT" in subject or "asap" in body or "deadline" in body
        bulk = "List-Unsubscribe" in head
        classes[path.name] = "urgent" if urgent else "bulk" if bulk else "normal"
    rows = list(csv.reader((folder / "triage.csv").read_text().splitlines()))
    found = {row[0]: row[-1] for row in rows[1:]}
    urgent = sorted(name for name, each in classes.items() if each == "urgent")
    counts = json.loads((folder / "summary.json").read_text())
    if found != classes:
        return f"triage.csv: {found} instead of {classes}"
    if (folder / "urgent.txt").read_text().split() != urgent:
        return "urgent.txt"
    return "" if Counter(classes.values()) == Counter(counts) else f"summary.json: {counts}"


_CLASSIFY = """\
echo file,from,subject,class > triage.csv
for f in {folder}/*.eml; do
  awk -v name="$(basename "$f")" '
    /^From: /    {{ if (!body) from = substr($0, 7) }}
    /^Subject: / {{ if (!body) subject = substr($0, 10) }}
    /^List-Unsubscribe:/ {{ bulk = 1 }}
    /^$/ {{ body = 1 }}
    body && /asap|deadline/ {{ urgent = 1 }}
    END {{
      if (subject ~ /URGENT/) urgent = 1
      class = urgent ? "urgent" : bulk ? "bulk" : "normal"
      print name "," from "," {subject} "," class
    }}' "$f" >> triage.csv || exit 1
done
"""
_QUOTED = r'"\"" subject "\""'
_COUNT = """\
awk -F, 'NR > 1 {{ n[$NF]++ }} END {{
  printf "{{\\"urgent\\": %d, \\"bulk\\": %d, \\"normal\\": %d{end}}}\\n",
    n["urgent"], n["bulk"], n["normal"] }}' triage.csv > summary.json
"""
MAILS = Chore(
    "mail triage",
    "Triage the files of mails/: triage.csv with file,from,subject,class, where class is urgent if the"
    " subject says URGENT or the body says asap or deadline, else bulk with a List-Unsubscribe header,"
    " else normal; the urgent file names sorted in urgent.txt; the number of each class in summary.json",
    make_mails,
    (
        {"type": "file_matches_schema", "path": "triage.csv", "format": "csv"},
        _command('test "$(tail -n +2 triage.csv | wc -l)" = "$(ls mails | wc -l)"'),
        _command("cd mails && grep -lE 'Subject: .*URGENT|asap|deadline' *.eml | cmp - ../urgent.txt"),
        {"type": "file_matches_schema", "path": "summary.json", "format": "json"},
    ),
    (
        {
            "name": "mail-triage",
            "plan": ["classify every mail", "list the urgent ones", "count the classes"],
            "results": ["triage.csv", "urgent.txt", "summary.json"],
            "sub_steps": [
                _shell("classify", _CLASSIFY.format(folder="mail", subject="subject")),
                _shell("urgent", "awk -F, '$4 == \"urgent\" {print $1}' triage.csv | sort > urgent.txt"),
                _shell("summary", _COUNT.format(end=","), {"type": "file_exists", "path": "summary.json"}),
            ],
        },
        _mend("classify", _CLASSIFY.format(folder="mails", subject="subject"), "the folder is mails"),
        _mend("classify", _CLASSIFY.format(folder="mails", subject=_QUOTED), "commas must be quoted"),
        _mend("urgent", "awk -F, '$NF == \"urgent\" {print $1}' triage.csv | sort > urgent.txt",
              "the class is the last field"),
        _mend("summary", _COUNT.format(end=""), "JSON has no comma before a brace"),
    ),
    wrong_mails,
)  # fmt: skip

# --- log triage ------------------------------------------------------------------------------

_SERVICES = ("api", "auth", "mail")
_MESSAGES = ("disk full", "timeout after 30 s", "connection reset", "bad token")


def make_logs(folder: Path, dice: random.Random) -> None:
    (folder / "logs").mkdir()
    for service in _SERVICES:
        lines = [
            f"2026-03-0{dice.randint(1, 9)}T10:{n:02} {dice.choice(('INFO', 'WARN', 'ERROR'))}"
            f" {dice.choice(_MESSAGES)}"
            for n in range(40)
        ]
        (folder / "logs" / f"{service}.log").write_text("\n".join(lines) + "\n")


def wrong_logs(folder: Path) -> str:
    counts, messages = {}, Counter[str]()
    for path in (folder / "logs").glob("*.log"):
        errors = [line for line in path.read_text().splitlines() if " ERROR " in line]
        counts[path.stem] = len(errors)
        messages.update(line.split(" ", 2)[2] for line in errors)
    ranked = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    wanted = ["# Errors", *(f"- {name}: {number}" for name, number in ranked), ""]
    top = max(messages.values())
    there = (folder / "report.md").read_text().splitlines()
    if there[: len(wanted)] != wanted:
        return f"report.md: {there[: len(wanted)]} instead of {wanted}"
    last = there[len(wanted)] if len(there) > len(wanted) else ""
    named = last.removeprefix("Most frequent: ").removesuffix(f" ({top})")
    return "" if messages.get(named) == top else f"report.md: {last!r}"


_ERRORS = "mkdir -p .work && grep -H{flag} {word} logs/*.log | sed 's|^logs/||; s|\\.log:| |' > .work/errors"
_RANK = "awk '{{print $1}}' .work/errors | sort | uniq -c | sort {order} > .work/ranked"
_TOP = "cut -d' ' -f{field} .work/errors | sort | uniq -c | sort -k1,1nr | head -n 1 > .work/top"
_REPORT = (
    (
        "{{ echo '# Errors'; awk '{{print \"- \" $2 \": \" $1}}' .work/ranked; echo; "
        'awk \'{{n = $1; $1 = ""; sub(/^ /, ""); print "Most frequent: " $0 " (" n ")"}}\' .work/top; }}'
        " > report.md"
    )
    .replace("{{", "{")
    .replace("}}", "}")
)
LOGS = Chore(
    "log triage",
    "From logs/*.log write report.md: the heading '# Errors', a line '- SERVICE: COUNT' for the ERROR lines"
    " of each service, most first and then by name, an empty line, and 'Most frequent: MESSAGE (COUNT)'",
    make_logs,
    (
        {"type": "file_contains", "path": "report.md", "regex": r"\A# Errors\n(- \w+: \d+\n)+\n"},
        _command("for f in logs/*.log; do n=$(grep -c ' ERROR ' $f); "
                 "grep -qx \"\\- $(basename $f .log): $n\" report.md || exit 1; done"),
        _command(
            'm=$(sed -n "s/^Most frequent: \\(.*\\) ([0-9]*)$/\\1/p" report.md); '
            'n=$(grep -hx ".* ERROR $m" logs/*.log | wc -l); grep -qx "Most frequent: $m ($n)" report.md'
        ),
        _command("sed -n 's/^- .*: //p' report.md | sort -c -nr"),
        {"type": "file_contains", "path": "report.md", "regex": r"\nMost frequent: [a-z].+ \(\d+\)\n\Z"},
    ),
    (
        {
            "name": "log-triage",
            "plan": ["collect the errors", "rank the services", "find the top message", "write the report"],
            "results": ["report.md"],
            "sub_steps": [
                _shell("errors", _ERRORS.format(flag="z", word="ERROR")),
                _shell("rank", _RANK.format(order="-k1,1n -k2,2")),
                _shell("top", _TOP.format(field=4)),
                _shell("report", _REPORT, {"type": "file_exists", "path": "report.md"}),
            ],
        },
        _mend("errors", _ERRORS.format(flag="", word="' ERROR '"), "lines end with a newline, not with NUL"),
        _mend("rank", _RANK.format(order="-k1,1nr -k2,2"), "most first"),
        _mend("top", _TOP.format(field="4-"), "a message has several words"),
    ),
    wrong_logs,
)  # fmt: skip

# --- config repair ---------------------------------------------------------------------------


def make_configs(folder: Path, dice: random.Random) -> None:
    (folder / "conf").mkdir()
    for number in range(1, 13):
        unit = dice.choice(("s", "m", ""))
        lines = [f"port = {8000 + number}", f"timeout = {dice.randint(1, 9)}{unit or '000'}"]
        lines.append(f"debug = {dice.choice(('on', 'off'))}")
        if number % 4 == 0:
            lines.append(f"port = {9000 + number}")
        (folder / "conf" / f"app{number:02}.conf").write_text("\n".join([*lines, ""]))
        (folder / "conf" / f"app{number:02}.conf.was").write_text("\n".join([*lines, ""]))


def wrong_configs(folder: Path) -> str:
    changes = Counter[str]()
    for path in sorted((folder / "conf").glob("*.conf")):
        before = Path(f"{path}.was").read_text().splitlines()
        values = dict(line.split(" = ") for line in before)
        timeout = values["timeout"]
        scale = {"s": 1000, "m": 60_000}.get(timeout[-1], 1)
        wanted = {**values, "timeout": str(int(timeout.rstrip("sm")) * scale), "debug": "off"}
        there = [line.split(" = ") for line in path.read_text().splitlines()]
        if len(there) != 3 or dict(there) != wanted:
            return f"{path.name}: {there} instead of {wanted}"
        changes[path.name] = sum(values[key] != wanted[key] for key in ("timeout", "debug"))
    rows = list(csv.reader((folder / "changes.csv").read_text().splitlines()))
    listed = Counter(row[0] for row in rows[1:])
    if rows[0] != ["file", "key", "old", "new"]:
        return f"changes.csv: heading {rows[0]}"
    return "" if listed == +changes else f"changes.csv: {listed} instead of {+changes}"


_REPAIR = """\
mkdir -p .work && : > .work/changes
for f in conf/*.conf; do
  awk -F' = ' -v name="$(basename "$f")" '
    {{ last[$1] = $2; if (!($1 in seen)) order[++n] = $1; seen[$1] = 1 }}
    END {{
      for (i = 1; i <= n; i++) {{
        key = order[i]; old = last[key]; new = old
        if (key == "timeout" && old ~ /s$/) new = old * 1000
        {minutes}
        if (key == "debug") new = "{debug}"
        print key " = " new
        if (new "" != old "") print name "," key "," old "," new >> ".work/changes"
      }}
    }}' "$f" > .work/new && mv .work/new "$f" || exit 1
done
"""
_MINUTES = 'if (key == "timeout" && old ~ /m$/) new = old * 60000'
_LIST = "{head}cat .work/changes {sign} changes.csv"
CONFIGS = Chore(
    "config repair",
    "Repair the 12 files conf/*.conf: every key once, the last value counts; timeout in milliseconds without"
    " a unit (30s is 30000, 2m is 120000); debug off; list what changed of timeout and debug in changes.csv"
    " with file,key,old,new",
    make_configs,
    (
        _command("test $(cat conf/*.conf | wc -l) = 36"),
        _command("! grep -hE '^timeout' conf/*.conf | grep -qvE '^timeout = [0-9]+$'"),
        _command("test $(cat conf/*.conf | grep -cx 'debug = off') = 12"),
        {"type": "file_contains", "path": "changes.csv", "regex": r"\Afile,key,old,new\n"},
    ),
    (
        {
            "name": "config-repair",
            "plan": ["repair every file", "list the changes"],
            "results": ["conf", "changes.csv"],
            "sub_steps": [
                _shell("repair", _REPAIR.format(minutes="", debug="false")),
                _shell("list", _LIST.format(head="", sign=">"),
                       {"type": "file_exists", "path": "changes.csv"}),
            ],
        },
        _mend("list", _LIST.format(head="echo file,key,old,new > changes.csv && ", sign=">>"),
              "the list needs its heading"),
        _mend("repair", _REPAIR.format(minutes=_MINUTES, debug="false"), "minutes are a unit too"),
        _mend("repair", _REPAIR.format(minutes=_MINUTES, debug="off"), "off, not false"),
    ),
    wrong_configs,
)  # fmt: skip

CHORES: Sequence[Chore] = (MAILS, LOGS, CONFIGS)
