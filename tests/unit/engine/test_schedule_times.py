"""When a cron line is due: across summer time, and after an engine that was away."""

from __future__ import annotations

from datetime import datetime
from itertools import islice
from zoneinfo import ZoneInfo

import pytest

from openry.errors import UsageError
from openry.ledger.schedules import Schedule
from openry.orchestrator.schedules import (
    due_times,
    local_zone,
    next_at,
    preview,
    times_after,
    wanted,
)


def times(cron, zone, start, count):
    after = datetime.fromisoformat(start).replace(tzinfo=ZoneInfo(zone))
    return [f"{at:%m-%d %H:%M%z}" for at in islice(times_after(cron, zone, after), count)]


@pytest.mark.parametrize(
    ("cron", "zone", "start", "expected"),
    [
        # Skipped by summer time: once, right after the gap.
        ("30 2 * * *", "Europe/Berlin", "2026-03-28", ["03-28 02:30+0100", "03-29 03:00+0200"]),
        ("30 2 * * *", "America/New_York", "2026-03-08", ["03-08 03:00-0400", "03-09 02:30-0400"]),
        # Comes twice: counts once.
        ("30 2 * * *", "Europe/Berlin", "2026-10-25", ["10-25 02:30+0200", "10-26 02:30+0100"]),
        ("30 1 * * *", "America/New_York", "2026-11-01", ["11-01 01:30-0400", "11-02 01:30-0500"]),
        # Lists and ranges of hours stay where they are in local time.
        (
            "0 7-8 * * *",
            "America/Los_Angeles",
            "2020-03-07",
            ["03-07 07:00-0800", "03-07 08:00-0800", "03-08 07:00-0700", "03-08 08:00-0700"],
        ),
        (
            "0 7-8 * * *",
            "America/Los_Angeles",
            "2020-10-31",
            ["10-31 07:00-0700", "10-31 08:00-0700", "11-01 07:00-0800", "11-01 08:00-0800"],
        ),
        # A zone without summer time.
        ("0 8 * * 1-5", "Asia/Shanghai", "2026-12-04", ["12-04 08:00+0800", "12-07 08:00+0800"]),
        # `*` goes by the time that passes: every hour is an hour.
        (
            "0 * * * *",
            "Europe/Berlin",
            "2026-10-25T01:30",
            ["10-25 02:00+0200", "10-25 02:00+0100", "10-25 03:00+0100"],
        ),
    ],
)
def test_summer_time_neither_loses_nor_doubles_a_run(cron, zone, start, expected):
    """A skipped time runs once after the gap, a doubled one once, everything else by the clock."""
    assert times(cron, zone, start, len(expected)) == expected


@pytest.mark.parametrize("cron", ["61 * * * *", "* * *", "0 0 31 2 *", "every day", ""])
def test_what_is_no_cron_line_is_one_sentence(cron):
    """With an example of one."""
    with pytest.raises(UsageError, match=r"is no cron line: .*0 8"):
        times(cron, "UTC", "2026-01-01", 1)


@pytest.mark.parametrize("zone", ["Europe/Nowhere", "../etc/passwd", "", "/etc/localtime"])
def test_an_unknown_zone_is_one_sentence(zone):
    """No path is a zone."""
    with pytest.raises(UsageError, match="no time zone"):
        times_after("* * * * *", zone, datetime(2026, 1, 1, tzinfo=ZoneInfo("UTC"))).__next__()


HOURLY = Schedule("s", "w", "0 * * * *", "UTC", next_at="2026-03-01T10:00:00.000Z")


@pytest.mark.parametrize(
    ("now", "due"),
    [
        ("2026-03-01T09:59:59.000Z", 0),
        ("2026-03-01T10:00:00.000Z", 1),
        ("2026-03-01T12:30:00.000Z", 3),
        ("2027-03-01T12:30:00.000Z", 100),
    ],
)
def test_every_time_since_the_last_look_is_due(now, due):
    """Of very many only the latest are looked at."""
    found = due_times(HOURLY, now)
    assert len(found) == due
    assert list(found) == sorted(found)


@pytest.mark.parametrize(
    ("catch_up", "now", "expected"),
    [
        ("none", "2026-03-01T12:00:30.000Z", ["12"]),
        ("none", "2026-03-01T12:30:00.000Z", []),
        ("last", "2026-03-01T12:30:00.000Z", ["12"]),
        ("all", "2026-03-01T12:30:00.000Z", ["10", "11", "12"]),
    ],
)
def test_missed_times_are_made_up_for_as_wanted(catch_up, now, expected):
    """`none` begins only what is seen in time, `last` the last one, `all` each."""
    schedule = Schedule("s", "w", "0 * * * *", "UTC", catch_up, next_at=HOURLY.next_at)
    found = wanted(schedule, due_times(schedule, now), now)
    assert [at[11:13] for at in found] == expected


def test_the_next_time_is_said_in_both_clocks():
    """Local time with its offset, and UTC."""
    berlin = datetime(2026, 7, 1, tzinfo=ZoneInfo("Europe/Berlin"))
    (first,) = preview("0 8 * * *", "Europe/Berlin", berlin, 1)
    assert first == {"local": "2026-07-01T08:00:00+02:00", "utc": "2026-07-01T06:00:00.000Z"}
    schedule = Schedule("s", "w", "0 8 * * *", "Europe/Berlin")
    assert next_at(schedule, "2026-07-01T00:00:00.000Z") == first["utc"]


def test_this_machine_has_a_zone(monkeypatch):
    """`TZ` names it; what is no zone is UTC."""
    monkeypatch.setenv("TZ", "Asia/Shanghai")
    assert local_zone() == "Asia/Shanghai"
    monkeypatch.setenv("TZ", "no such zone")
    assert local_zone() == "UTC"
