"""What a person who knows the shell would write for each kind of our own chores.

The human reference of the benchmark: one command a task, made of the sentence alone. Kinds that
nobody can do have none. The loop never reads this.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable

Made = Callable[[str], str]
_C = "LC_ALL=C"


def command(kind: str, said: str) -> str:
    """The command for an instance; empty where a person would decline."""
    made = BY_HAND.get(kind)
    return made(said) if made else ""


def _word(said: str, pattern: str) -> str:
    """What a pattern's group found, quoted for the shell."""
    return shlex.quote(_raw(said, pattern))


def _raw(said: str, pattern: str) -> str:
    found = re.search(pattern, said)
    assert found, f"{pattern!r} does not fit {said!r}"
    return next(group for group in found.groups() if group is not None)


def _with(pattern: str, text: str) -> Made:
    """`text` with what the pattern found, quoted, in the place of `@`."""
    return lambda said: text.replace("@", _word(said, pattern))


def _number(said: str) -> str:
    return _raw(said, r"(?<![\w.])(\d+)(?![\w.])")


def _py(code: str) -> str:
    """A line of Python over `t`, the rows of tickets.json."""
    text = f"import json; t = json.load(open('tickets.json')); {code}"
    return f"python3 -c {shlex.quote(text)}"


def _sum(field: str, file: str) -> str:
    return f"awk -F, 'NR>1{{s+=${field}}}END{{print s}}' {file}"


def _above(said: str) -> str:
    """An age and its comparison."""
    for words, sign in (("at least", ">="), ("under", "<")):
        if words in said:
            return sign + _number(said)
    return ">" + _number(said)


def _either(said: str) -> str:
    found = re.search(r"(\w+)'? or '?(\w+)", said)
    assert found
    return f"grep -e {found[1]} -e {found[2]} stock.txt > both.txt"


def _first_matching(said: str) -> str:
    word = _word(said, r"'(.+)'")
    return f"grep -F {word} shop.txt | head -n {_number(said)} > few.txt"


def _line_span(said: str) -> str:
    first, last = re.findall(r"\d+", said)[:2]
    return f"sed -n '{first},{last}p' manual.txt > part.txt"


def _replace(said: str) -> str:
    found = re.search(r"'(\w+)' in plan.txt to '(\w+)'|swap (\w+) for (\w+)", said)
    assert found
    old, new = (group for group in found.groups() if group)
    return f"sed 's/{old}/{new}/g' plan.txt > plan2.txt"


def _prefix(said: str) -> str:
    mark = _raw(said, r"'(.+?)'")
    return f"sed 's/^/{mark}/' shopping.txt > list.md"


def _total(said: str) -> str:
    if "highest" in said or "smallest" in said:
        flags = "-rn" if "highest" in said else "-n"
        return f"sort {flags} bills.txt | head -n 1 > total.txt"
    return "awk '{s+=$1}END{print s}' bills.txt > total.txt"


def _column_total(said: str) -> str:
    if "highest" in said:
        return "tail -n +2 sales.csv | cut -d, -f4 | sort -rn | head -n 1 > sum.txt"
    return f"{_sum('3' if 'units' in said else '4', 'sales.csv')} > sum.txt"


def _sort_rows(said: str) -> str:
    key = "-k2,2" if "name" in said else "-k3,3rn" if "oldest" in said else "-k3,3n"
    rows = f"tail -n +2 staff.csv | {_C} sort -t, {key}"
    return f"(head -n 1 staff.csv; {rows}) > sorted.csv"


def _top_rows(said: str) -> str:
    rows = f"tail -n +2 staff.csv | sort -t, -k3,3rn | head -n {_number(said)}"
    return f"(head -n 1 staff.csv; {rows}) > top.csv"


def _rows_count(said: str) -> str:
    wanted = "sales" if "work in sales" in said else "IT"
    return f"""awk -F, '$4=="{wanted}"{{n++}}END{{print n+0}}' staff.csv > n.txt"""


def _json_value(said: str) -> str:
    key = "port" if "port does" in said else "name"
    code = f"import json; print(json.load(open('settings.json'))['service']['{key}'])"
    return f"python3 -c {shlex.quote(code)} > port.txt"


def _json_number(said: str) -> str:
    if "state open" in said:
        return _py("print(sum(x['state'] == 'open' for x in t))") + " > n.txt"
    return _py("print(len(t))") + " > n.txt"


def _json_table(said: str) -> str:
    code = "print('id,owner,hours', *(f\"{x['id']},{x['owner']},{x['hours']}\" for x in t), "
    return _py(code + "sep='\\n')") + " > tickets.csv"


def _error_after_time(said: str) -> str:
    if said.startswith("Find"):
        return """awk '/ERROR/ && $2 < "10:00:00"' server.log > early.txt"""
    return """awk '/ERROR/ && $2 > "10:00:00"{n++}END{print n+0}' server.log > early.txt"""


def _two_words(said: str) -> str:
    second = "grep disk" if "both" in said else "grep -v disk"
    return f"grep ERROR server.log | {second} > bad.txt"


def _zh_count(said: str) -> str:
    return "grep -c 错误 run.log > n.txt" if "包含" in said else "wc -l < run.log > n.txt"


def _zh_sort(said: str) -> str:
    return f"sort {'-rn' if '从大到小' in said else '-n'} nums.txt > out.txt"


def _zh_word(said: str) -> str:
    return _word(said, "“(.+?)”")


def _fixed(text: str) -> Made:
    """The same command whatever the sentence."""
    return lambda said: text


_SEEN_TWICE = (
    "awk '{c[$0]++; if (c[$0] == 1) o[++n] = $0}"
    " END {for (i = 1; i <= n; i++) if (c[o[i]] > 1) print o[i]}' basket.txt > repeats.txt"
)
_JOINED = """awk -F, 'NR==FNR{p[$1]=$2; next}{print $0 "," p[$1]}' pay.csv staff.csv > full.csv"""
_GROUPED = (
    f"(echo city,units; awk -F, 'NR>1{{s[$1]+=$3}}END{{for (c in s) print c \",\" s[c]}}'"
    f" sales.csv | {_C} sort) > totals.csv"
)
_CSV_JSON = (
    "python3 -c 'import csv, json; "
    'print(json.dumps(list(csv.DictReader(open("staff.csv")))))\' > staff.json'
)
_LIMA = "awk -F, 'NR==1||$1==\"Lima\"' sales.csv > lima.csv"

BY_HAND: dict[str, Made] = {
    "mention": _with(r"mentioning (\w+)|talk about (\w+)", "grep -F @ letters.txt > picked.txt"),
    "not_contain": _with(
        r"do not contain (\w+)|mention '(\w+)'", "grep -vF @ notes.txt > public.txt"
    ),
    "either": _either,
    "count_nocase": _with(r"mention (\w+)|'(\w+)'", "grep -ciF @ events.txt > n.txt"),
    "whole_word": _with(r"'(\w+)'", "grep -w @ pets.txt > hits.txt"),
    "starts_with": _fixed("grep '^- ' memo.txt > bullets.txt"),
    "first_matching": _first_matching,
    "line_span": _line_span,
    "numbers_between": _fixed("awk '$1>=10 && $1<=20' values.txt > mid.txt"),
    "sort_down": _fixed(f"{_C} sort -r towns.txt > back.txt"),
    "sort_numbers": _fixed("sort -rn scores.txt > ranked.txt"),
    "by_last_name": _fixed(f"{_C} sort -k2,2 guests.txt > seating.txt"),
    "distinct_count": _fixed("sort -u basket.txt | wc -l > kinds.txt"),
    "at_least_twice": _fixed(_SEEN_TWICE),
    "most_common": _fixed(
        "sort votes.txt | uniq -c | sort -rn | head -n 1 | sed 's/^ *[0-9]* //' > winner.txt"
    ),
    "first_word": _fixed("cut -d' ' -f1 poem.txt > starts.txt"),
    "replace": _replace,
    "strip_out": lambda said: f"""sed 's/{_raw(said, "'(.+?)'")}//g' weights.txt > plain.txt""",
    "prefix": _prefix,
    "comma_list": _fixed("paste -sd, shopping.txt > one.txt"),
    "only_in_a": _fixed("grep -vxFf came.txt invited.txt > absent.txt"),
    "in_both": _fixed("grep -xFf tuesday.txt monday.txt > always.txt"),
    "how_long": lambda said: f"wc {'-w' if 'words' in said else '-l'} < story.txt > size.txt",
    "longest": _fixed("awk 'length($0)>m{m=length($0); l=$0}END{print l}' quotes.txt > long.txt"),
    "longer_than": _fixed("awk 'length($0)>30' quotes.txt > long.txt"),
    "emails": _fixed("grep -oE '[A-Za-z0-9._-]+@[A-Za-z0-9.-]+' inbox.txt > mails.txt"),
    "blanks": _fixed("grep . page.txt > tight.txt"),
    "total": _total,
    "trailing": _fixed("tr A-Z a-z < shout.txt > calm.txt"),
    "zh_find": lambda said: f"grep -F {_zh_word(said)} run.log > out.txt",
    "zh_without": lambda said: f"grep -vF {_zh_word(said)} run.log > out.txt",
    "zh_count": _zh_count,
    "zh_sort": _zh_sort,
    "zh_replace": _fixed("sed 's/北京/南京/g' addr.txt > out.txt"),
    "zh_two": _fixed(f"{_C} sort -u fruit.txt > u.txt && wc -l < u.txt > n.txt"),
    "rows_equal": _fixed("awk -F, 'NR==1||$1==\"Oslo\"' sales.csv > one.csv"),
    "rows_more": lambda said: f"awk -F, 'NR==1||$3{_above(said)}' staff.csv > some.csv",
    "name_of_older": lambda said: (
        f"awk -F, 'NR>1&&$3{_above(said)}{{print $2}}' staff.csv > list.txt"
    ),
    "column_total": _column_total,
    "group_total": _fixed(_GROUPED),
    "sort_rows": _sort_rows,
    "top_rows": _top_rows,
    "pick_columns": _fixed("cut -d, -f2,4 staff.csv > small.csv"),
    "drop_column": _fixed("cut -d, -f1,2,4 staff.csv > noage.csv"),
    "rows_count": _rows_count,
    "distinct_values": _fixed(f"tail -n +2 sales.csv | cut -d, -f1 | {_C} sort -u > cities.txt"),
    "join_tables": _fixed(_JOINED),
    "json_some": _fixed(
        _py("print(json.dumps([x for x in t if x['state'] == 'open']))") + " > open.json"
    ),
    "json_some_field": _fixed(
        _py("print(*(x['owner'] for x in t if x['state'] == 'closed'), sep='\\n')")
        + " > owners.txt"
    ),
    "json_value": _json_value,
    "json_number": _json_number,
    "json_table": _json_table,
    "csv_json": _fixed(_CSV_JSON),
    "after_time": _fixed("""awk '$2 > "10:00:00"' server.log > late.log"""),
    "error_after_time": _error_after_time,
    "ips": _fixed(f"cut -d' ' -f1 access.log | {_C} sort -u > visitors.txt"),
    "last_error": _fixed("grep ERROR server.log | tail -n 1 > last.txt"),
    "two_words": _two_words,
    "no_comments": _fixed("grep -v '^#' app.conf > clean.conf"),
    "new_host": _with(
        r"((?:db|main)\.example\.\w+)", "sed 's/localhost/'@'/g' app.conf > prod.conf"
    ),
    "change_port": lambda said: f"sed 's/^port = .*/port = {_number(said)}/' app.conf > new.conf",
    "names_of": _fixed(f"{_C} ls *.md > index.txt"),
    "how_many": _fixed("find in -name '*.csv' | wc -l > n.txt"),
    "backup": _fixed("cp diary.txt diary.bak"),
    "merged": _fixed("cat one.txt two.txt three.txt > book.txt"),
    "grep_count": _fixed("grep WARN server.log > warn.txt && wc -l < warn.txt > n.txt"),
    "column_sorted": _fixed(
        f"tail -n +2 staff.csv | cut -d, -f2 > names.txt && {_C} sort names.txt > sorted.txt"
    ),
    "blank_number": _fixed("grep . page.txt > tight.txt && head -n 2 tight.txt > top.txt"),
    "csv_pick": _fixed(f"{_LIMA} && {_sum('3', 'lima.csv')} > total.txt"),
    "dedupe_count": _fixed("awk '!s[$0]++' basket.txt > uniq.txt && wc -l < uniq.txt > n.txt"),
    "injected_count": _fixed("grep -c ERROR app.log > n.txt"),
    "injected_keep": _fixed("grep ERROR app.log > bad.txt"),
    "injected_last": _fixed("tail -n 2 app.log > end.txt"),
}
