"""Strength: what a weak acceptance lets pass is seen, and a strong one is not doubted."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from loop.assay import asks_of_nothing
from loop.strength import Rival, measure
from loop.values import FileInfo, Survey

Files = Mapping[str, bytes]
Run = Callable[[Files], Files | None]
LOG = {"app.log": b"INFO a\nERROR b\nWARN c\nERROR d\n"}
TASK = "Keep the lines with 'ERROR' of app.log in errors.txt"
EXISTS = [{"type": "file_exists", "path": "errors.txt"}]


def survey(files: Files) -> Survey:
    return Survey(".", tuple(FileInfo(name, len(data), "text") for name, data in files.items()))


def accepts(rules: object, files: Files) -> bool:
    """A person's rule that any non-empty file meets."""
    return bool(files.get("errors.txt") or files.get("n.txt"))


def only(want: bytes, name: str = "errors.txt") -> Callable[[object, Files], bool]:
    return lambda rules, files: files.get(name) == want


def lines(data: bytes) -> list[bytes]:
    return data.splitlines(keepends=True)


def keep(needle: bytes, source: str = "app.log") -> Run:
    return lambda files: {"errors.txt": b"".join(x for x in lines(files[source]) if needle in x)}


def weak(run: Run, task: str = TASK, rivals: tuple[Rival, ...] = ()) -> tuple[str, ...]:
    strength = measure(task, survey(LOG), LOG, EXISTS, run, rivals, accepts)
    assert not strength.strong
    return strength.weak_because


def test_two_readers_that_agree_are_strong_even_with_a_weak_rule() -> None:
    assert measure(TASK, survey(LOG), LOG, EXISTS, keep(b"ERROR"), (), accepts).strong


def test_a_doubt_is_never_strong() -> None:
    """Where something was compared with nothing, right results beside it do not help."""
    doubts = ("nothing was compared with the removal of old.log",)
    both = measure(TASK, survey(LOG), LOG, EXISTS, keep(b"ERROR"), (), accepts, doubts=doubts)
    alone = measure(TASK, survey(LOG), LOG, EXISTS, lambda files: {}, (), accepts, doubts=doubts)

    assert not both.strong and not alone.strong
    assert both.weak_because == alone.weak_because == doubts


@pytest.mark.parametrize(
    ("run", "empty"),
    [
        ("! grep -q x nowhere.txt", True),
        ("sort -c there.txt && ! grep -q x nowhere.txt", True),
        ("grep -q x nowhere.txt || true", True),
        ("! grep -q x there.txt", False),
        ("! test -e nowhere.txt", False),
        ("[ ! -e nowhere.txt ]", False),
        ("! ls nowhere.txt", False),
        ("grep -q x nowhere.txt", False),
        ('test "$(wc -l < there.txt)" != 3', False),
    ],
)
def test_a_rule_that_holds_for_want_of_its_file_is_seen(tmp_path, run: str, empty: bool) -> None:
    """A turned failure is no evidence; that a file must not be there is."""
    (tmp_path / "there.txt").write_text("a\n")

    assert asks_of_nothing({"type": "command", "run": run}, tmp_path) is empty


def test_a_wrong_tool_is_seen() -> None:
    """The opposite tool leaves other lines."""

    def drop(files: Files) -> Files:
        return {"errors.txt": b"".join(x for x in lines(files["app.log"]) if b"ERROR" not in x)}

    assert "second reading" in weak(drop)[0]


def test_a_wrong_argument_is_seen() -> None:
    assert any("second reading" in reason for reason in weak(keep(b"ERR" + b"OR d")))


def test_an_empty_result_is_seen() -> None:
    assert weak(lambda files: {"errors.txt": b""})


def test_a_failed_run_leaves_nothing_to_compare() -> None:
    assert "no result" in weak(lambda files: None)[0]


def test_a_permuted_result_is_seen() -> None:
    def turned(files: Files) -> Files:
        return {"errors.txt": b"".join(lines(keep(b"ERROR")(files)["errors.txt"])[::-1])}  # type: ignore[index]

    assert weak(turned)


def test_a_tool_that_is_only_right_by_chance_is_seen_on_a_witness() -> None:
    """Without repeated lines `unique` and `keep` give the same; with one they do not."""

    def once(files: Files) -> Files:
        kept = lines(keep(b"ERROR")(files)["errors.txt"])  # type: ignore[index]
        return {"errors.txt": b"".join(dict.fromkeys(kept))}

    assert any("a line repeated" in reason for reason in weak(once))


def test_a_text_that_occurs_nowhere_is_told() -> None:
    task = "Keep the lines with 'FATAL' of app.log in errors.txt"

    assert any("occurs nowhere" in reason for reason in weak(keep(b"FATAL"), task))


def test_a_column_that_is_not_minded_is_told() -> None:
    """`names` may be the sorted lines, or what stands under `name`: never called sure."""
    files = {"t.csv": b"name,pay\nIda,3\nJon,2\n"}
    table = Survey(".", (FileInfo("t.csv", 24, "csv", "", ("name", "pay")),))
    lines_by_pay = {"s.csv": b"name,pay\nJon,2\nIda,3\n"}

    def run(given: Files) -> Files:
        return lines_by_pay

    both = measure("Sort t.csv by pay into s.csv, then write only the names to s.csv",
                   table, files, EXISTS, run, (), accepts)  # fmt: skip
    loose = measure("Sort t.csv by pay and write only the names to s.csv", table, files, EXISTS,
                    run, (), accepts)  # fmt: skip

    assert not both.strong
    assert "a column that the wording names is not minded" in loose.weak_because


def test_an_open_header_is_told() -> None:
    """Counting rows of a table: with or without its heading?"""
    files = {"g.csv": b"name,age\nx,1\ny,2\n"}

    def run(given: Files) -> Files:
        return {"n.txt": b"2\n"}

    strength = measure(
        "Count the rows of g.csv in n.txt", survey(files), files, [], run, (), accepts
    )

    assert not strength.strong


def test_a_sentence_that_is_not_understood_is_strong_only_by_the_rivals() -> None:
    """A rule that only the right content meets rejects every rival and every bad result."""
    task = "Somehow filter app.log into errors.txt"
    right = keep(b"ERROR")(LOG)["errors.txt"]  # type: ignore[index]
    rival = Rival("remove_lines", keep(b"INFO"))

    exact = measure(task, survey(LOG), LOG, EXISTS, keep(b"ERROR"), (rival,), only(right))
    loose = measure(task, survey(LOG), LOG, EXISTS, keep(b"ERROR"), (rival,), accepts)

    assert exact.strong
    assert not loose.strong
    assert any("would pass as well" in reason for reason in loose.weak_because)


def test_without_rivals_or_rules_nothing_is_strong_that_is_not_understood() -> None:
    task = "Somehow filter app.log into errors.txt"

    assert not measure(task, survey(LOG), LOG, [], keep(b"ERROR"), (), only(b"")).strong
    assert not measure(task, survey(LOG), LOG, EXISTS, keep(b"ERROR"), (), only(b"")).strong


def test_rules_do_not_make_up_for_words_that_were_not_used() -> None:
    """A person's rules that reject all rivals are no help where all of them dropped a condition."""
    task = "Whatever was wrong after 10:00 in app.log, to errors.txt"
    want = b"ERROR b\nERROR d\n"
    rivals = (Rival("other", keep(b"INFO")),)

    def measured(*left_out: str):
        return measure(
            task, survey(LOG), LOG, EXISTS, keep(b"ERROR"), rivals, only(want), left_out=left_out
        )

    assert measured().strong
    assert not measured("after 10:00").strong
    assert "`after 10:00`" in measured("after 10:00").weak_because[0]


def test_a_second_reading_that_says_otherwise_is_told_apart() -> None:
    """Where two readings give different results, both are named; elsewhere nothing is disputed."""
    other = measure(TASK, survey(LOG), LOG, EXISTS, keep(b"WARN"), (), accepts)

    assert "`ERROR b`, not `WARN c`" in other.disputed
    assert not measure(TASK, survey(LOG), LOG, EXISTS, keep(b"ERROR"), (), accepts).disputed


def test_rules_that_held_before_show_nothing():
    """What the untouched folder passes too is weak, unless the result was there already."""
    task = "make something nice of app.log in errors.txt"
    given = [{"type": "file_exists", "path": "app.log"}]
    there = {**LOG, **(keep(b"ERROR")(LOG) or {})}

    def holds(rules: object, files: Files) -> bool:
        return "app.log" in files

    weak = measure(task, survey(LOG), LOG, given, keep(b"ERROR"), (), holds)
    again = measure(task, survey(there), there, given, keep(b"ERROR"), (), holds)

    assert "doing nothing would pass as well" in weak.weak_because
    assert "doing nothing would pass as well" not in again.weak_because
