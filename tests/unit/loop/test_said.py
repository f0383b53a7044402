"""What is said as it stands fills the arguments of tools that are used by name."""

from __future__ import annotations

from pathlib import Path

import pytest

from loop.binding import Scene, fill, without_remarks
from loop.binding.said import dates_in
from loop.choosing import veiled
from loop.mentions import find_mentions
from loop.survey import survey
from openry.capability.registry import load_registry

REGISTRY = load_registry()
POT = "https://example.org/a?pot=1"


@pytest.fixture
def arguments(tmp_path: Path):
    """The arguments of a tool by the best way to fill it, without where the answer goes."""
    for name in (
        "box.mbox",
        "note.eml",
        "plan.md",
        "drafts/one.md",
        "Post/cur/1",
        "app.py",
        "pots.db",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        text = "SQLite format 3\0" if name == "pots.db" else "From a@example.org\n"
        (tmp_path / name).write_text(text)
    looked = survey(tmp_path)

    def made(name: str, text: str) -> dict[str, object] | None:
        asked = without_remarks(text)
        mentions = find_mentions(text, looked)
        scene = Scene(text, mentions, looked, asked, veiled(asked), answer="answer.txt")
        ways = fill(REGISTRY.get(name), scene)
        found = ways[0].args if ways else None
        return {k: v for k, v in found.items() if v != "answer.txt"} if found else None

    return made


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("from 2025-03-04 to 5 Jun 2025", ["2025-03-04", "5 Jun 2025"]),
        ("March 3rd, 2025 or 03/04/2025", ["March 3rd, 2025", "03/04/2025"]),
        ("at 2025-03-04T10:15Z and 2025-03-04 10:15 +02:00",
         ["2025-03-04T10:15Z", "2025-03-04 10:15 +02:00"]),
        ("4:30 pm on 2025-03-04", ["2025-03-04 4:30 pm"]),
        ("2025年3月4日，或 1741000000", ["2025年3月4日", "1741000000"]),
        ("version 1.2.3, 12 of 30, https://example.org/2025-03-04", []),
    ],
)  # fmt: skip
def test_dates_are_found_as_they_are_written(text: str, said: list[str]):
    """Days, moments and epochs, in the order of the text; parts of other things are none."""
    assert [each for _, _, each in dates_in(text)] == said


@pytest.mark.parametrize(
    ("tool", "text", "wanted"),
    [
        ("date_difference", "weeks from 2025-03-04 until 2025-06-01",
         {"text": "2025-03-04", "other": "2025-06-01", "unit": "weeks"}),
        ("shift_date", "what is 12 days before 4 March 2025",
         {"text": "4 March 2025", "amount": -12, "unit": "days"}),
        ("shift_date", "a month after 2025-03-04",
         {"text": "2025-03-04", "amount": 1, "unit": "months"}),
        ("convert_time_zone", "2025-03-04 10:00 Europe/Oslo, in Asia/Seoul",
         {"text": "2025-03-04 10:00", "zone": "Europe/Oslo", "to": "Asia/Seoul"}),
        ("convert_time_zone", "what is 2025-03-04T10:00Z in Asia/Seoul",
         {"text": "2025-03-04T10:00Z", "to": "Asia/Seoul"}),
        ("current_time", "the clock in Europe/Oslo", {"zone": "Europe/Oslo", "style": "time"}),
        ("http_request", f"what does {POT} answer", {"url": POT}),
        ("http_request", f'POST {{"pot": 2}} to {POT}',
         {"url": POT, "method": "POST", "body": '{"pot": 2}'}),
        ("download", f"{POT} saved as pot.html", {"url": POT, "output": "pot.html"}),
        ("send_mail", "send note.eml over mail.example.org port 587, user kim, starttls",
         {"path": "note.eml", "host": "mail.example.org", "port": 587, "user": "kim",
          "encryption": "starttls"}),
        ("fetch_mail", "the newest 7 mails of kim from imap.example.org into Post",
         {"host": "imap.example.org", "user": "kim", "count": 7, "output": "Post"}),
        ("list_mail", "mails in box.mbox from Kim about 'the plan' since 2025-03-04",
         {"path": "box.mbox", "sender": "Kim", "subject": "the plan", "since": "2025-03-04"}),
        ("read_mail", "read message 3 of box.mbox", {"path": "box.mbox", "id": "3"}),
        ("read_mail", "message 1 in Post", {"path": "Post", "id": "1"}),
        ("draft_mail", "draft to kim@example.org, subject 'Tea', saying 'at four', as tea.eml",
         {"to": ["kim@example.org"], "subject": "Tea", "text": "at four", "output": "tea.eml"}),
        ("draft_mail", "write kim@example.org, cc lee@example.org, 'Tea', 'at four', tea.eml",
         {"to": ["kim@example.org"], "cc": ["lee@example.org"], "subject": "Tea",
          "text": "at four", "output": "tea.eml"}),
        ("sqlite_query", "run SELECT name FROM pot WHERE size > 3 on pots.db",
         {"path": "pots.db", "query": "SELECT name FROM pot WHERE size > 3"}),
        ("sqlite_query", "pots.db: select name from pot order by size, save it to sizes.csv",
         {"path": "pots.db", "query": "select name from pot order by size", "output": "sizes.csv"}),
        ("git_show", "what did the commit v2.1 change in app.py",
         {"revision": "v2.1", "file": "app.py"}),
        ("git_diff", "difference between 1a2b3c4d and HEAD~3",
         {"revision": "1a2b3c4d", "other": "HEAD~3"}),
        ("git_log", "commits by kim since 2025-03-04", {"author": "kim", "since": "2025-03-04"}),
        ("create_archive", "pack plan.md and the folder drafts into all.zip",
         {"paths": ["plan.md", "drafts"], "output": "all.zip"}),
    ],
)  # fmt: skip
def test_what_is_said_fills_the_argument_it_is_for(arguments, tool, text, wanted):
    """By its form, the word before it, or its place among others of its kind."""
    assert arguments(tool, text) == wanted


@pytest.mark.parametrize(
    ("tool", "text"),
    [
        ("date_difference", "how long is it from 2025-03-04"),
        ("convert_time_zone", "2025-03-04 10:00 somewhere else"),
        ("http_request", "what does example answer"),
        ("send_mail", "send note.eml"),
        ("draft_mail", "draft a mail to kim@example.org as tea.eml"),
    ],
)
def test_without_a_word_for_what_is_needed_the_tool_is_not_feasible(arguments, tool, text):
    """Nothing is made up."""
    assert arguments(tool, text) is None
