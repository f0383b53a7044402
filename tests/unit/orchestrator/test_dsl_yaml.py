"""Reading YAML: what scalars mean, what is refused, and where."""

from __future__ import annotations

import pytest

from openry.orchestrator.yaml12 import compose, decode, plain

LAUGHS = "a0: &a0 [lol, lol, lol, lol, lol]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 12)
)


def read(text: str) -> object:
    document = compose(text, "f.yaml")
    assert document.problems == ()
    return plain(document.data)


def complaint(text: str) -> str:
    problems = compose(text, "f.yaml").problems
    assert len(problems) == 1
    return str(problems[0])


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("on", "on"), ("off", "off"), ("yes", "yes"), ("NO", "NO"), ("n", "n"), ("012", 12),
        ("1e3", 1000.0), ("0x1F", 31), ("0o17", 15), ("1_000", "1_000"), ("12:30", "12:30"),
        ("2026-03-01", "2026-03-01"), ("~", None), ("", None), ("null", None), ("TRUE", True),
        ("-.5", -0.5), ("+7", 7), ("1.10", 1.1), ("'1'", "1"), ('"true"', "true"), (".", "."),
        ("!!str 1", "1"), ("!!float 1", 1.0), ("=", "="), ("-", [None]),
    ],
)  # fmt: skip
def test_scalars_mean_what_yaml_1_2_says(written, meant):
    """`on`, `NO` and dates are words; numbers are numbers; quotes make text."""
    assert read(f"a:\n  {written}\n") == {"a": meant}


def test_keys_are_words_however_they_look():
    """`on:`, `yes:`, `1:` and `null:` are keys of that name."""
    assert read("on: 1\nyes: 2\n1: 3\nnull: 4\n") == {"on": 1, "yes": 2, "1": 3, "null": 4}


def test_numbers_remember_their_spelling():
    """A version written `1.10` can be read back as it was written."""
    assert compose("version: 1.10").data["version"].text == "1.10"


def test_merge_keys_and_aliases_are_understood():
    """`<<` brings the keys of another mapping; its own keys win."""
    text = "base: &b {x: 1, y: 2}\nmine:\n  <<: *b\n  y: 3\nsame: *b\n"

    assert read(text) == {
        "base": {"x": 1, "y": 2},
        "mine": {"y": 3, "x": 1},
        "same": {"x": 1, "y": 2},
    }


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: 1\nb: 2\na: 3\n", "f.yaml:3: key `a` is given twice: `1` and `3` (first on line 1"),
        ("a:\n\tb: 1\n", "f.yaml:2: a tab is used for indentation (column 1) (use spaces)"),
        ("a: b: c\n", "f.yaml:1: not valid YAML: mapping values are not allowed"),
        ('a: "C:\\Users"\n', "single quotes take 'C:\\Users' as it is"),
        ("a: {{ x }}\n", "quote a value that begins with `{{`"),
        ("a: 'open\nb: 1\n", "a quote is not closed"),
        ("a: [1, 2\nb: 3\n", "f.yaml:2"),
        ("a: @x\n", "quote a value that starts with `%`, `@` or a backtick"),
        ("a: !thing x\n", "f.yaml:1: tag `!thing` is not understood"),
        ("a: 1\n---\nb: 2\n", "f.yaml:2: a second document starts here"),
        ("", "f.yaml:1: the file is empty"),
        ("# only a comment\n", "the file is empty"),
        ("a: &x [*x]\n", "anchor `x` contains itself"),
        ("a: *nope\n", "unknown alias `*nope`"),
        ("a: \x07\n", "f.yaml:1: character U+0007 is not allowed in YAML (column 4)"),
        (LAUGHS, "expands past 10 MB"),
        ("a: " + "[" * 200 + "]" * 200, "nested deeper than 100 levels"),
    ],
)
def test_what_cannot_be_read_is_one_sentence_with_its_line(text, said):
    """A syntax error, a doubled key, a bomb: one sentence, with line and way out."""
    assert said in complaint(text)


def test_crlf_and_a_byte_order_mark_are_tolerated():
    """A file from another system reads the same, and no CR gets into a command."""
    text = "\ufeffcommand: |\r\n  echo 1\r\n  echo 2\r\n"

    assert read(text) == {"command": "echo 1\necho 2\n"}


def test_line_separators_of_unicode_are_characters():
    """U+2028 and U+0085 end no line in YAML 1.2."""
    assert read("a: 'x\u2028y\u0085z'\nb: 1\n") == {"a": "x\u2028y\u0085z", "b": 1}


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        ("a: 1".encode("utf-16"), "f.yaml:1: the file is UTF-16"),
        (b"a: 1\nb: \xff\xfe\n", "f.yaml:2: not UTF-8 (column 4)"),
    ],
)
def test_other_encodings_are_named_with_their_place(raw, said):
    """A file that is not UTF-8 says where it stops being it."""
    _, problems = decode(raw, "f.yaml")

    assert said in str(problems[0])


def test_a_thousand_steps_read_in_a_moment():
    """Composing is linear: 1,000 steps take well under a second."""
    import time

    steps = "".join(f"- id: s{n}\n  command: |\n    echo {n}\n  x: [1, 2]\n" for n in range(1000))
    started = time.process_time()

    assert len(read(steps)) == 1000
    assert time.process_time() - started < 4
