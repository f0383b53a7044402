"""The CSV tools against the csv module and plain dictionaries."""

from __future__ import annotations

import csv
import io
import json
from collections import defaultdict
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openry.capability.builtin.failure import ToolFailure

SOME = settings(max_examples=25, deadline=None)
CELLS = st.one_of(
    st.sampled_from(["a", "b", "Rome", 'say "hi"', "x, y", "two\nlines", " padded ", "ä", "大"]),
    st.text(st.characters(codec="utf-8", exclude_characters="\r\0"), min_size=1, max_size=6),
)
ROWS = st.lists(st.tuples(CELLS, CELLS, st.integers(-99, 99).map(str)), max_size=8)
NAMES = ("name", "city", "points")


def table(rows, delimiter: str = ",", names=NAMES) -> bytes:
    out = io.StringIO()
    csv.writer(out, delimiter=delimiter, lineterminator="\n").writerows(
        [names, *rows] if names else rows
    )
    return out.getvalue().encode()


def read(content: bytes, delimiter: str = ",") -> list[list[str]]:
    return list(csv.reader(io.StringIO(content.decode(), newline=""), delimiter=delimiter))


# --- columns ------------------------------------------------------------------------------


@SOME
@given(ROWS, st.sampled_from(NAMES))
def test_a_column_is_its_values_in_order(call, rows, name):
    """By name or by number, one per line; a line break in a cell becomes a space."""
    place = NAMES.index(name)
    wanted = [" ".join(row[place].splitlines()) for row in rows]

    by_name = call("csv_column", table(rows), column=name)

    assert by_name.decode().split("\n")[:-1] == wanted
    assert call("csv_column", table(rows), column=place + 1, header="present") == by_name


@SOME
@given(ROWS, st.permutations(NAMES), st.integers(1, 3), st.sampled_from([",", ";", "\t", "|"]))
def test_columns_are_chosen_dropped_and_put_in_order(call, rows, order, count, delimiter):
    """The chosen ones and the dropped ones are the whole table, in the file's own delimiter."""
    content = table(rows, delimiter)
    chosen, dropped = order[:count], [n for n in NAMES if n not in order[:count]]
    as_dicts = [dict(zip(NAMES, row, strict=True)) for row in rows]
    given_delimiter = {"delimiter": delimiter, "header": "present"}

    kept = read(call("csv_columns", content, columns=chosen, **given_delimiter), delimiter)

    assert kept == [chosen, *([row[n] for n in chosen] for row in as_dicts)]
    if dropped:
        rest = call("csv_drop_columns", content, columns=dropped, **given_delimiter)
        in_order = [n for n in NAMES if n in chosen]
        assert read(rest, delimiter) == [in_order, *([r[n] for n in in_order] for r in as_dicts)]


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_the_delimiter_is_found(call, delimiter):
    """Also where another delimiter stands in the text."""
    content = table([("a, b", "c;d", "1")], delimiter)

    assert call("csv_headers", content) == b"name\ncity\npoints\n"
    assert call("csv_column", content, column="points") == b"1\n"


@pytest.mark.parametrize(
    ("content", "rows", "assumed"),
    [
        (b"name,age\nAnn,3\n", 1, "the first row is taken as the header"),
        (b"Ann,3\nBo,4\n", 2, "there is no header row"),
        (b"a,a\nb,c\n", 2, "there is no header row"),
        (b"a,\nb,c\n", 2, "there is no header row"),
        (b"", 0, None),
    ],
)
def test_it_says_whether_a_header_was_assumed(call, capsys, content, rows, assumed):
    """A number, an empty cell or a name twice in the first row: no header."""
    assert int(call("csv_count_rows", content)) == rows
    said = capsys.readouterr().err
    assert (assumed or "") in said
    assert bool(said) is bool(assumed)


def test_a_named_column_proves_the_header(call):
    """`2025` in the first row is a name when it is asked for as one."""
    assert call("csv_column", b"city,y2025\nRome,5\n", column="y2025") == b"5\n"
    assert call("csv_column", b"x1,7\n1,2\n", column="x1") == b"1\n"


def test_names_are_found_as_people_write_them(call):
    """Case and signs do not matter when no name fits exactly; a wrong one is told the nearest."""
    content = b"First Name,e-mail\nAnn,a@b.c\n"

    assert call("csv_column", content, column="first_name") == b"Ann\n"
    assert call("csv_column", content, column="EMAIL") == b"a@b.c\n"
    with pytest.raises(ToolFailure, match="did you mean `First Name`"):
        call("csv_column", content, column="frist name")
    with pytest.raises(ToolFailure, match="there is no 3"):
        call("csv_column", content, column=3)
    with pytest.raises(ToolFailure, match="no header, so name a column by its number"):
        call("csv_column", b"1,2\n", column="age")


# --- rows ---------------------------------------------------------------------------------


@SOME
@given(ROWS, st.integers(-99, 99), st.sampled_from(["==", "!=", ">", ">=", "<", "<="]))
def test_numbers_are_compared_as_numbers(call, rows, limit, op):
    """9 is less than 10, and every row is kept or not, never changed."""
    tests = {
        "==": limit.__eq__, "!=": limit.__ne__, ">": limit.__lt__,
        ">=": limit.__le__, "<": limit.__gt__, "<=": limit.__ge__,
    }  # fmt: skip
    wanted = [row for row in rows if tests[op](int(row[2]))]

    got = call("csv_filter", table(rows), column="points", op=op, value=limit)

    assert got == table(wanted)


@SOME
@given(ROWS, CELLS.map(str.strip).filter(bool))
def test_texts_are_compared_as_texts(call, rows, value):
    """Equal, contained, at the start, at the end; the opposite keeps the other rows."""
    content = table(rows)

    def kept(op, **flags):
        return call("csv_filter", content, column="name", op=op, value=value, **flags)

    assert kept("contains") == table([r for r in rows if value in r[0].strip()])
    assert kept("not_contains") == table([r for r in rows if value not in r[0].strip()])
    assert kept("starts") == table([r for r in rows if r[0].strip().startswith(value)])
    assert kept("ends") == table([r for r in rows if r[0].strip().endswith(value)])
    assert sorted(read(kept("==")) + read(kept("!="))) == sorted([*read(content), list(NAMES)])


def test_a_row_is_kept_to_the_byte(call):
    """Quotes that were not needed, spaces and line ends stay as they were."""
    content = b'name,n\r\n"Ann", 1\r\n"B ""o""",2\r\n'

    assert call("csv_filter", content, column="n", op=">", value=0) == content
    assert call("csv_sort", content, column="name", reverse=True) == (
        b'name,n\r\n"B ""o""",2\r\n"Ann", 1\r\n'
    )


def test_dates_are_in_order_as_text_and_empty_cells_meet_no_order(call):
    """ISO dates compare by character; nothing is neither more nor less."""
    content = b"d\n2026-01-02\n\n2025-12-31\n"

    assert (
        call("csv_filter", content, column="d", op=">=", value="2026-01-01") == b"d\n2026-01-02\n"
    )
    assert (
        call("csv_filter", b"a,n\nx,\ny,3\n", column="n", op="<", value=5, header="present")
        == b"a,n\ny,3\n"
    )
    assert call("csv_filter", b"a,n\nx,\ny,3\n", column="n", op="empty") == b"a,n\nx,\n"


@SOME
@given(ROWS, st.booleans())
def test_sorting_is_stable_and_by_value(call, rows, reverse):
    """Numbers as numbers, texts by character code, equal rows in their order."""
    by_points = sorted(rows, key=lambda row: int(row[2]), reverse=reverse)
    options = {"reverse": reverse, "header": "present"}

    assert call("csv_sort", table(rows), column="points", **options) == table(by_points)
    if all(row[0].strip() for row in rows):
        by_name = sorted(rows, key=lambda row: row[0].strip(), reverse=reverse)
        got = call("csv_sort", table(rows), column="name", numeric="text", **options)
        assert got == table(by_name)


def test_empty_cells_come_last_whichever_way(call):
    """What is not known is not the smallest."""
    content = b"n,v\na,\nb,2\nc,1\n"

    assert call("csv_sort", content, column="v") == b"n,v\nc,1\nb,2\na,\n"
    assert call("csv_sort", content, column="v", reverse=True, count=1) == b"n,v\nb,2\n"


# --- figures ------------------------------------------------------------------------------


@SOME
@given(ROWS.filter(bool))
def test_figures_per_group_are_those_of_the_group(call, rows):
    """Sum, count and extremes by a dictionary of lists."""
    groups = defaultdict(list)
    for row in rows:
        groups[row[1].strip()].append(int(row[2]))

    for function, work in {"sum": sum, "min": min, "max": max, "count": len}.items():
        got = call(
            "csv_aggregate", table(rows), column="points", function=function, group_by="city"
        )
        wanted = {city: str(work(values)) for city, values in groups.items()}
        head, *body = read(got)
        assert head == ["city", "count" if function == "count" else "points"]
        assert body == [[city, wanted[city]] for city in sorted(wanted)]


@SOME
@given(ROWS.filter(bool))
def test_figures_of_a_column_are_bare_numbers(call, rows):
    """One number and a line end."""
    values = [int(row[2]) for row in rows]

    def figure(function):
        return Decimal(
            call("csv_aggregate", table(rows), column="points", function=function).decode()
        )

    assert figure("sum") == sum(values)
    assert figure("max") == max(values)
    assert figure("count") == len(values)
    assert abs(figure("mean") - Decimal(sum(values)) / len(values)) <= Decimal("0.0000005")


def test_the_groups_can_be_put_in_the_order_of_the_figures(call):
    """The largest first; without a head where asked."""
    content = b"shop,n\na,1\nb,5\nc,5\na,2\n"
    ask = {"column": "n", "group_by": "shop", "keep_header": False}

    assert call("csv_aggregate", content, order="value", **ask) == b"b,5\nc,5\na,3\n"
    assert call("csv_aggregate", content, order="appearance", **ask) == b"a,3\nb,5\nc,5\n"


def test_what_is_no_number_is_said_and_left_out(call, capsys):
    """A mean over `n/a` would be wrong either way, so it is told."""
    assert call("csv_aggregate", b"x,n\na,1\nb,n/a\nc,\n", column="n") == b"1\n"
    assert "1 values that are no numbers were left out" in capsys.readouterr().err
    with pytest.raises(ToolFailure, match="no number to take the mean of"):
        call("csv_aggregate", b"x,n\na,b\n", column="n", function="mean")


# --- other forms --------------------------------------------------------------------------


@SOME
@given(ROWS)
def test_json_objects_hold_the_rows_as_text(call, rows):
    """One object per row, values as they stand, and the list is JSON."""
    made = json.loads(call("csv_to_json", table(rows), header="present"))

    assert made == [dict(zip(NAMES, row, strict=True)) for row in rows]


@SOME
@given(ROWS.filter(bool))
def test_csv_to_json_and_back_is_the_same_table(call, rows):
    """Nothing is lost on the way."""
    there = call("csv_to_json", table(rows))

    assert read(call("json_to_csv", there)) == read(table(rows))


def test_typed_values_are_what_they_look_like(call):
    """Numbers, truth and nothing; a leading zero is an article number, not a number."""
    content = b"a,b,c,d,e\n1,2.5,true,,007\n"

    assert json.loads(call("csv_to_json", content, typed=True)) == [
        {"a": 1, "b": 2.5, "c": True, "d": None, "e": "007"}
    ]


def test_rows_without_a_header_and_names_twice_have_keys_all_the_same(call):
    """`column_1` and so on; a second `x` is `x_2`."""
    assert json.loads(call("csv_to_json", b"1,2\n"))[0] == {"column_1": "1", "column_2": "2"}
    twice = call("csv_to_json", b"x,x\na,b\n", header="present")
    assert json.loads(twice) == [{"x": "a", "x_2": "b"}]


KEYS = st.sampled_from(["1", "2", "3", "x"])


@SOME
@given(st.lists(st.tuples(KEYS, CELLS)), st.lists(st.tuples(KEYS, CELLS)))
def test_a_join_pairs_every_left_row_with_every_partner(call, left, right):
    """As two nested loops do; `left` keeps the lonely ones of the left, `outer` of both."""
    names, others = ("id", "a"), ("id", "b")
    content = {"content": table(left, names=names), "other": table(right, names=others)}
    pairs = [[k, a, b] for k, a in left for other, b in right if k == other]
    lonely = [[k, a, ""] for k, a in left if k not in [other for other, _ in right]]
    strangers = [[k, "", b] for k, b in right if k not in [own for own, _ in left]]

    def joined(how):
        head, *body = read(call("table_join", **content, how=how))
        assert head == ["id", "a", "b"]
        return sorted(body)

    assert joined("inner") == sorted(pairs)
    assert joined("left") == sorted(pairs + lonely)
    assert joined("outer") == sorted(pairs + lonely + strangers)


def test_a_join_without_a_shared_column_says_so(call):
    """It names what there is."""
    with pytest.raises(ToolFailure, match="share no column name"):
        call("table_join", b"a,b\nx,y\n", other=b"c,d\nx,y\n")


FORMS = st.tuples(
    st.permutations(NAMES),
    st.sampled_from([",", ";", "\t", "|"]),
    st.sampled_from(["\n", "\r\n"]),
    st.sampled_from(["", "\ufeff"]),
    st.booleans(),
)


@SOME
@given(st.lists(st.tuples(ROWS, FORMS), min_size=1, max_size=4), st.lists(st.integers(0, 4)))
def test_tables_one_below_the_other_have_all_rows_under_one_header(
    call, tmp_path_factory, tables, empty
):
    """Whatever the order of the columns, the delimiter, the line ends, the mark at the start and
    the last line end of each file; empty files add nothing."""
    contents = []
    for rows, (order, delimiter, end, mark, closed) in tables:
        out = io.StringIO()
        writer = csv.DictWriter(out, order, delimiter=delimiter, lineterminator=end)
        writer.writeheader()
        writer.writerows(dict(zip(NAMES, row, strict=True)) for row in rows)
        text = out.getvalue()
        contents.append((mark + (text if closed else text.removesuffix(end))).encode())
    for place in empty:
        contents.insert(place, b"")
    folder = tmp_path_factory.mktemp("tables")
    paths = [str(folder / f"{number}.csv") for number in range(len(contents))]
    for path, content in zip(paths, contents, strict=True):
        Path(path).write_bytes(content)

    first, delimiter, *_ = tables[0][1]
    head, *body = read(call("csv_concat", paths=paths), delimiter)

    assert head == list(first)
    assert body == [
        [dict(zip(NAMES, row, strict=True))[name] for name in first]
        for rows, _ in tables
        for row in rows
    ]


def test_rows_of_tables_alike_stay_as_they_stood(call, write):
    """Quotes that need not be there, too; each row ends as those of the first file do."""
    paths = [write("a.csv", b'n,t\r\n"1","x\r\ny"'), write("b.csv", b'n, t\n"2",z\n')]

    assert call("csv_concat", paths=paths) == b'n,t\r\n"1","x\r\ny"\r\n"2",z\r\n'


def test_nothing_but_empty_files_gives_nothing(call, write):
    assert call("csv_concat", paths=[write("a.csv", b""), write("b.csv", b"\n")]) == b""


def test_tables_of_other_columns_are_not_put_below(call, write):
    """All that differ are named at once, by file."""
    paths = [
        write("a.csv", b"id,name\n1,x\n"),
        write("b.csv", b"id,city\n2,y\n"),
        write("c.csv", b"id,name,id\n3,z,4\n"),
    ]

    with pytest.raises(ToolFailure) as failure:
        call("csv_concat", paths=paths)

    for part in ("b.csv` has no `name`", "b.csv` alone has `city`", "c.csv` alone has `id`"):
        assert part in str(failure.value)
    twice = [write("d.csv", b"id,id,n\n1,2,3\n"), write("e.csv", b"n,id,id\n1,2,3\n")]
    with pytest.raises(ToolFailure, match="another order, and one name twice"):
        call("csv_concat", paths=twice)
