"""No secret passes, however the reads cut it."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openry.output.redact import Redactor, is_secret_name

SECRETS = {"API_KEY": "hunter2-hunter2", "DB_PASSWORD": "aaaaaa", "MY_TOKEN": "line one\nline two"}
TOKENS = {
    "GITHUB_TOKEN": "ghp_" + "a1B2" * 9,
    "GITLAB_TOKEN": "glpat-" + "x" * 20,
    "AWS_ACCESS_KEY": "AKIA" + "ABCD1234" * 2,
    "API_KEY": "sk-proj-" + "Z9_-" * 10,
    "SLACK_TOKEN": "xoxb-" + "123456789012-abcdef",
    "GOOGLE_API_KEY": "AIza" + "SyA-_" * 7,
    "HF_TOKEN": "hf_" + "abcDEF" * 5,
    "NPM_TOKEN": "npm_" + "abc123" * 6,
    "PYPI_TOKEN": "pypi-" + "AgEIcHlwaS5vcmc" * 4,
    "JWT": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.SflKxwRJSMeKKF2QT4f",
}
KEY = "-----BEGIN RSA PRIVATE KEY-----\n" + "MIIEow\n" * 50 + "-----END RSA PRIVATE KEY-----\n"
PLAIN = [
    " ",
    "\n",
    "task-",
    "risk_",
    "://",
    "@",
    "-----",
    "aaaaa",
    "hunter2-",
    "eyJ",
    "key=",
    "é",
    "x",
]

pieces = st.lists(
    st.sampled_from([*SECRETS.values(), *TOKENS.values(), KEY, *PLAIN]), min_size=1, max_size=12
)


def _in_reads(redactor: Redactor, data: bytes, cuts: list[int]) -> bytes:
    stream = redactor.stream()
    places = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    return b"".join(stream.feed(data[a:b]) for a, b in pairwise(places)) + stream.end()


@given(pieces, st.lists(st.integers(0, 10_000), max_size=8))
def test_no_known_secret_passes_however_reads_are_cut(parts: list[str], cuts: list[int]):
    """Values of secret variables are found whole, in pieces, and beside each other."""
    redactor = Redactor.from_environment(SECRETS)

    clean = _in_reads(redactor, "".join(parts).encode(), cuts).decode()

    assert not [secret for secret in SECRETS.values() if secret in clean]


@given(st.sampled_from(sorted(TOKENS)), st.lists(st.integers(0, 200), max_size=6))
def test_no_well_known_token_passes_however_reads_are_cut(name: str, cuts: list[int]):
    """Not even a good part of it."""
    token = TOKENS[name]

    clean = _in_reads(Redactor(), f"a {token} b".encode(), cuts).decode()

    assert clean == f"a ***{name}*** b"


@given(st.lists(st.integers(0, 500), max_size=6))
def test_a_private_key_is_one_mask(cuts: list[int]):
    """From its first line to its last, over as many reads as it takes."""
    clean = _in_reads(Redactor(), f"before\n{KEY}after".encode(), cuts).decode()

    assert clean.startswith("before\n***PRIVATE_KEY***")
    assert clean.endswith("after")
    assert "MIIE" not in clean


@given(st.text(), st.lists(st.integers(0, 100), max_size=4))
def test_what_is_no_secret_is_not_changed(text: str, cuts: list[int]):
    """Bytes in, the same bytes out."""
    data = text.encode()

    assert _in_reads(Redactor.from_environment({"KEY": "not-in-there-at-all"}), data, cuts) == data


def test_a_password_in_an_address_is_masked():
    """Its user too; the rest of the address stays."""
    clean = Redactor().text("psql postgres://me:hunter22@db.example/x and a@b, http://x:80/@home")

    assert clean == "psql postgres://***URL_PASSWORD***@db.example/x and a@b, http://x:80/@home"


def test_short_values_are_not_secrets():
    """Under six characters a value would be masked everywhere."""
    assert Redactor.from_environment({"API_KEY": "yes"}).text("yes") == "yes"


def test_configured_patterns_and_exceptions():
    """Literals and expressions are added; a name may be let through."""
    redactor = Redactor.from_environment(
        {"MY_TOKEN": "visible"}, literals=["Zürich"], patterns=[r"id-\d+"], excepted=["MY_TOKEN"]
    )

    assert redactor.text("visible id-77 Zürich") == "visible ***CONFIGURED*** ***CONFIGURED***"


@pytest.mark.parametrize(
    ("name", "secret"),
    [
        ("AWS_SECRET_ACCESS_KEY", True),
        ("SESSION_COOKIE", True),
        ("db_password", True),
        ("SENTRY_DSN", True),
        ("PGPASSWORD", True),
        ("PWD", False),
        ("KEYBOARD", False),
        ("AUTHOR", False),
    ],
)
def test_which_names_hold_secrets(name: str, secret: bool):
    """By whole words of the name."""
    assert is_secret_name(name) is secret
