"""Dates against what Python and the system's own `date` make of them."""

from __future__ import annotations

import json
import shutil
import subprocess
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openry.capability import complete, load_registry
from openry.capability.builtin.failure import ToolFailure
from openry.capability.builtin.runner import load

REGISTRY = load_registry()
DAYS = st.dates(date(1, 2, 1), date(9999, 11, 30))
MOMENTS = st.datetimes(datetime(1971, 1, 1), datetime(2037, 1, 1))
ZONES = st.sampled_from(
    ["UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe"]
)


def run(name: str, *words: str, **arguments) -> str:
    tool = REGISTRY.get(name)
    given_args = dict(zip(("text", "other"), words, strict=False)) | arguments
    return load(tool.python or "")(**complete(tool, given_args)).decode().rstrip("\n")


FORMS = [
    "{0:%Y}-{0:%m}-{0:%d}", "{0:%Y}/{0.month}/{0.day}", "{0.day}.{0.month}.{0:%Y}",
    "{0.day} {0:%B} {0:%Y}", "{0:%b} {0.day}, {0:%Y}", "{0.day}th of {0:%B}, {0:%Y}",
    "{0:%A}, {0.day} {0:%b} {0:%Y}", "{0:%Y}年{0.month}月{0.day}日", "{0:%d}-{0:%b}-{0:%Y}",
    "{0:%Y%m%d}",
]  # fmt: skip


@given(st.dates(date(1000, 1, 1), date(9999, 12, 31)), st.sampled_from(FORMS))
def test_common_forms_mean_the_day_that_was_written(day: date, form: str):
    """Ten ways to write a day are read back as it."""
    told = json.loads(run("parse_date", form.format(day)))

    assert told["iso"] == day.isoformat()
    assert told["weekday"] == day.strftime("%A")
    assert told["day_of_year"] == int(day.strftime("%j"))
    year, week, _ = day.isocalendar()
    assert told["week"] == f"{year}-W{week:02}"


STYLES = ["iso", "long", "short", "european", "chinese", "week", "compact", "rfc2822", "date"]


@given(st.dates(date(1000, 1, 3), date(9999, 12, 20)), st.sampled_from(STYLES))
def test_what_is_written_can_be_read_back(day: date, style: str):
    """Every style without a doubt in it leads back to the day."""
    written = run("format_date", day.isoformat(), style=style)

    assert run("format_date", written, style="date") == day.isoformat()


@given(DAYS, st.integers(-400_000, 400_000))
def test_days_are_added_as_days(day: date, amount: int):
    """And the difference of the two is what was added."""
    try:
        wanted = day + timedelta(days=amount)
    except OverflowError:
        with pytest.raises(ToolFailure, match="outside the years"):
            run("shift_date", day.isoformat(), amount=amount, unit="days")
        return

    assert run("shift_date", day.isoformat(), amount=amount, unit="days") == wanted.isoformat()
    assert run("date_difference", day.isoformat(), wanted.isoformat()) == str(amount)


@given(st.dates(date(1900, 1, 1), date(2100, 1, 1)), st.integers(-60, 60))
def test_working_days_are_counted_one_by_one(day: date, amount: int):
    """The same as walking day by day and leaving out weekends."""
    wanted, left = day, abs(amount)
    while left:
        wanted += timedelta(days=1 if amount > 0 else -1)
        left -= wanted.weekday() < 5
    walked = [day + timedelta(days=each) for each in range((wanted - day).days)]

    assert run("shift_date", day.isoformat(), amount=amount, unit="business_days") == str(wanted)
    if amount >= 0:
        counted = str(sum(each.weekday() < 5 for each in walked))
        told = run("date_difference", day.isoformat(), str(wanted), unit="business_days")
        assert told == counted


@given(st.dates(date(1900, 1, 1), date(2100, 1, 1)), st.integers(-500, 500))
def test_months_keep_the_day_or_take_the_last_one(day: date, amount: int):
    """31 January and a month is the last of February; the months between are as many."""
    later = date.fromisoformat(run("shift_date", day.isoformat(), amount=amount, unit="months"))

    assert (later.year - day.year) * 12 + later.month - day.month == amount
    is_last = (later + timedelta(days=1)).day == 1
    assert later.day == day.day or (is_last and later.day < day.day)
    if amount >= 0:
        told = run("date_difference", day.isoformat(), later.isoformat(), unit="months")
        assert told == str(amount)


@given(MOMENTS, ZONES, ZONES, st.integers(-5000, 5000))
def test_hours_are_exact_whatever_clocks_do(moment: datetime, zone: str, to: str, hours: int):
    """Zones change what is shown, never the moment."""
    moment = moment.replace(microsecond=0, tzinfo=UTC).astimezone(ZoneInfo(zone))
    there = run("convert_time_zone", moment.isoformat(), to=to)
    later = run("shift_date", moment.isoformat(), amount=hours, unit="hours")

    assert datetime.fromisoformat(there) == moment
    assert there.removesuffix("Z")[:19] == moment.astimezone(ZoneInfo(to)).isoformat()[:19]
    assert datetime.fromisoformat(later) - moment == timedelta(hours=hours)
    assert run("date_difference", moment.isoformat(), later, unit="hours") == str(hours)


@pytest.mark.skipif(
    not shutil.which("date") or b"GNU" not in subprocess.run(["date", "--version"],
    capture_output=True).stdout, reason="needs GNU date")  # fmt: skip
@pytest.mark.parametrize("text", ["2026-03-29 02:30", "2026-10-25 02:30", "2026-07-01 00:00"])
def test_clocks_are_what_the_system_says(text: str):
    """A day in the zone, seen by GNU date and by us."""
    shown = run("convert_time_zone", text, to="America/New_York", zone="UTC")
    program = ["date", "-d", f"{text} UTC", "+%Y-%m-%dT%H:%M:%S%:z"]
    made = subprocess.run(program, capture_output=True, text=True, env={"TZ": "America/New_York"})

    assert shown == made.stdout.strip()


def test_a_day_that_may_be_two_is_asked_about():
    """1 February or 2 January: nobody guesses; what can only be one is taken."""
    with pytest.raises(ToolFailure, match="may be 2026-02-01 or 2026-01-02"):
        run("parse_date", "01/02/2026")

    assert run("format_date", "01/02/2026", style="iso", order="month_first") == "2026-01-02"
    assert run("format_date", "31/12/2026", style="iso") == "2026-12-31"
    assert run("format_date", "12/31/2026", style="iso") == "2026-12-31"
    assert run("format_date", "05/05/2026", style="iso") == "2026-05-05"


def test_clocks_that_jump_are_told(capsys):
    """A time that does not exist is moved forward, one that is there twice is the first."""
    moved = run("format_date", "2026-03-29 02:30", style="iso", zone="Europe/Berlin")
    twice = run("format_date", "2026-10-25 02:30", style="iso", zone="Europe/Berlin")

    assert moved == "2026-03-29T03:30:00+02:00"
    assert twice == "2026-10-25T02:30:00+02:00"
    assert capsys.readouterr().err.count("note: clocks") == 2


@pytest.mark.parametrize(
    ("text", "more", "said"),
    [
        ("30 Feb 2026", {}, "is no date"),
        ("2026-13-01", {}, "is no date"),
        ("soon", {}, "is no date that is understood"),
        ("2026-01-01 25:00", {}, "is no date"),
        ("2026-01-01 noonish", {}, "is no time of day"),
        ("2026-01-01 13 pm", {}, "is 1 to 12"),
        ("2026-01-01", {"zone": "Europe/Berln"}, "did you mean `Europe/Berlin`"),
        ("2026-01-01", {"zone": "Tokyo"}, "did you mean `Asia/Tokyo`"),
        ("2026-01-01", {"zone": "../../etc/passwd"}, "is no time zone|must match"),
        ("99999999999999", {}, "is no date|outside"),
        ("999999999999", {}, "outside the years"),
    ],
)
def test_what_is_no_date_is_a_sentence(text: str, more: dict, said: str):
    """With the place and, where there is one, the way out."""
    with pytest.raises(Exception, match=said) as refusal:
        run("parse_date", text, **more)
    assert type(refusal.value).__name__ in ("ToolFailure", "BadArgumentsError")


@given(st.text(max_size=30))
def test_any_text_is_a_date_or_a_sentence(text: str):
    """Nothing fails inside."""
    tool = REGISTRY.get("parse_date")
    try:
        json.loads(load(tool.python or "")(text, "UTC", "ask"))
    except ToolFailure as failure:
        assert failure.error_class == "bad_arguments"
