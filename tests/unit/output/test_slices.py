"""Slices: cut where records end, nothing lost; summaries: nothing kept that is not there."""

from __future__ import annotations

import io
import json
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openry.errors import BadFileError, UsageError
from openry.output.slices import INDEX, SUMMARIES, checked, cut, merge_slices, table_header
from openry.output.slices import write_slices as write_slices_
from openry.output.tokens import MARGIN, weigh

LINES = st.sampled_from(
    ["plain line", "", "  indented", "\ttab", "Traceback (most recent call last):", "  File x",
     "E: y", "中文 line", "{", '  "a": 1,', "}", "@@ -1,3 +1,4 @@", "+added", "-removed",
     "diff --git a b", "a,b,c", '1,"x', 'y",2', "=" * 20, "x" * 300]
)  # fmt: skip
TEXTS = st.lists(LINES, max_size=80).map("\n".join)


@settings(max_examples=200, deadline=None)
@given(TEXTS, st.integers(40, 2000), st.integers(1, 500))
def test_all_slices_one_after_the_other_are_the_output(text, size, step):
    """Nothing lost, nothing twice, headers aside, however it is read; sizes and numbers fit."""
    data = text.encode()
    made = list(cut([data[i : i + step] for i in range(0, len(data), step)], size))
    assert b"".join(one.body for one in made) == data
    assert all(len(one.body) <= size for one in made)
    first = 1
    for one in made:
        assert one.first == first
        first += one.body.count(b"\n")


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=3000), st.integers(40, 300))
def test_no_character_is_cut(text, size):
    """Each slice of valid UTF-8 is valid UTF-8."""
    for one in cut([text.encode("utf-8", "replace")], size):
        one.body.decode("utf-8")


@settings(max_examples=100, deadline=None)
@given(st.lists(st.text("abc 中é", max_size=30), min_size=1, max_size=60))
def test_a_line_is_cut_only_when_it_is_larger_than_a_slice(lines):
    """All slices but the last end with a line end."""
    data = "\n".join(lines).encode()
    made = list(cut([data], 200))
    assert all(one.body.endswith(b"\n") for one in made[:-1])


def test_a_traceback_is_not_cut():
    """Wherever the border falls."""
    trace = (
        "Traceback (most recent call last):\n"
        + '  File "a.py", line 3\n    f(x)\n' * 6
        + "KeyError: 1\n"
    )
    for shift in range(0, 400, 7):
        data = ("INFO ok\n" * shift + trace + "INFO ok\n" * 200).encode()
        (holder,) = [one for one in cut([data], 1200) if b"Traceback" in one.body]
        assert b"KeyError: 1\n" in holder.body, shift


def test_a_record_of_json_is_not_cut():
    """An array with a record over several lines each: slices begin with one."""
    data = json.dumps([{"id": n, "name": f"n{n}", "ok": True} for n in range(300)], indent=2)
    made = list(cut([data.encode()], 2000))
    assert len(made) > 5
    assert all(one.body.startswith(b"  {\n") for one in made[1:])


def test_hunks_and_test_reports_stay_whole():
    """A diff is cut at its hunks and files, a test run at its rulers."""
    hunks = "".join(f"@@ -{n},3 +{n},4 @@\n context\n-old {n}\n+new {n}\n" for n in range(300))
    made = list(cut([b"diff --git a/x b/x\n" + hunks.encode()], 1500))
    assert all(one.body.startswith((b"@@ ", b"diff ")) for one in made)
    reports = "".join(
        f"{'_' * 20} test_{n} {'_' * 20}\n\n    code {n}\nE   assert {n}\n\n" for n in range(90)
    )
    made = list(cut([reports.encode()], 1500))
    assert all(one.body.startswith(b"____") for one in made)


def test_the_head_of_a_table_is_repeated():
    """In the text of each slice but the first; the bodies are the table."""
    data = "name,size\n" + "".join(f"file{n}.txt,{n}\n" for n in range(500))
    made = list(cut([data.encode()], 900))
    assert len(made) > 5
    assert all(one.text.startswith(b"name,size\n") for one in made)
    assert b"".join(one.body for one in made).count(b"name,size") == 1


def test_a_line_end_in_quotes_is_no_end_of_a_record():
    """Rows of CSV with quoted line ends stay whole."""
    data = "id,text\n" + "".join(f'{n},"first\nsecond {n}"\n' for n in range(300))
    made = list(cut([data.encode()], 700))
    assert all(one.body.count(b'"') % 2 == 0 for one in made)


@pytest.mark.parametrize("text", ["a, b\nno table\n", "1,2\n3,4\n", "", "{,}\n{,}\n", "one\ntwo\n"])
def test_what_is_no_table_has_no_head(text):
    """Prose, numbers, JSON."""
    assert table_header(text.encode()) == b""


# --- picking --------------------------------------------------------------------------------


def write_slices(data: bytes, **more):
    files: dict[str, bytes] = {}
    about = {"tokens": 500, "most": 25, "words": (), "by": weigh, **more}
    text = write_slices_(io.BytesIO(data), files.__setitem__, **about)
    return json.loads(text), files


def big_log() -> bytes:
    pick = random.Random(1)
    lines = [
        f"INFO request {pick.randrange(10**6)} of {pick.randrange(99)} done" for _ in range(20_000)
    ]
    lines[13_333] = "ERROR batch Kq1 was rejected"
    return "\n".join(lines).encode()


def test_the_parts_worth_reading_are_picked():
    """At most so many: both ends, the one with the error, others spread evenly."""
    made, files = write_slices(big_log(), most=10)
    assert len(made["chunks"]) == 10
    texts = [files[one["file"]] for one in made["chunks"]]
    assert sum(b"Kq1" in text for text in texts) == 1
    firsts = [one["first"] for one in made["chunks"]]
    assert firsts == sorted(firsts)
    assert firsts[0] == 1
    assert firsts[-1] > 19_000
    assert json.loads(files[INDEX]) == made
    assert all(weigh(text) <= 500 * 1.15 for text in texts)


def test_equal_parts_are_read_once():
    """By the digest of their content."""
    made, _ = write_slices(b"same line here\n" * 50_000, most=1000)
    assert 1 <= len(made["chunks"]) <= 2
    assert made["slices"] > 100


def test_too_small_parts_are_refused():
    """With the least that may be asked for."""
    with pytest.raises(UsageError, match="at least 100"):
        write_slices(b"x\n", tokens=10)


# --- summaries ------------------------------------------------------------------------------

CHUNK = 'ERROR batch Kq1 of /srv/app/m7.py failed: "no credit" after 4417 ms\n' + "INFO fine\n" * 80


@pytest.mark.parametrize(
    "line",
    [
        "the batch failed with `no credit`",
        "- Kq1 failed after 4417 ms",
        "1. see /srv/app/m7.py",
        "nothing else of note",
    ],
)
def test_what_the_part_bears_out_is_kept(line):
    """Quotations, ids, numbers, paths, and lines without any."""
    assert checked(line, CHUNK, weigh) == ([line], 0)


@pytest.mark.parametrize(
    "line",
    [
        "batch Kq2 failed",
        "it took 4418 ms",
        "see /srv/app/m8.py",
        'it said "no money"',
        "err_code is set",
    ],
)
def test_what_is_not_there_is_dropped(line):
    """One wrong letter is enough."""
    assert checked(line, CHUNK, weigh) == ([], 1)


def test_a_summary_that_is_hardly_shorter_is_thrown_away():
    """It would only cost."""
    assert checked(CHUNK, CHUNK, weigh)[0] == []


def merged(files: dict[str, bytes], tokens: int = 2000) -> str:
    return merge_slices(files.__getitem__, tokens=tokens, by=weigh)


def test_summaries_are_put_together_in_order_within_their_limit():
    """Each under the lines it is of; what does not fit is left out at the end."""
    made, files = write_slices(big_log(), most=6)
    items = [{"summary": f"part {n}: requests done"} for n, _ in enumerate(made["chunks"])]
    items[3] = None
    files[SUMMARIES] = json.dumps({"items": items}).encode()
    whole, short = merged(files), merged(files, 60)
    assert whole.index("part 0") < whole.index("part 5")
    assert "part 3" not in whole
    assert whole.startswith("20,000 lines, ")
    assert whole.startswith(short)
    assert weigh(short.encode()) * MARGIN <= 60


@pytest.mark.parametrize(
    "summaries", [b"no json", b"{}", b'{"items": []}', b'{"items": [{"summary": "Kq99 happened"}]}']
)
def test_summaries_of_no_use_are_an_error(summaries):
    """So the handler fails, and the digest does instead."""
    _, files = write_slices(big_log(), most=3)
    files[SUMMARIES] = summaries
    with pytest.raises(BadFileError):
        merged(files)


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=300), st.binary(max_size=300))
def test_files_that_are_not_ours_are_no_traceback(index, summaries):
    """Whatever stands in them."""
    with pytest.raises(BadFileError):
        merged({INDEX: index, SUMMARIES: summaries})
