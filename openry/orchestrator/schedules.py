"""What begins by the clock: when a cron line is due, and what follows then.

A time that summer time skips is made up for once, right after the gap; one that comes twice counts
once. Lines whose minute or hour is `*` go by the time that passes, as in Debian's cron.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice, takewhile
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError

from openry.errors import UsageError
from openry.ledger.journal import seconds_between
from openry.ledger.schedules import Schedule

#: A due time that is no older counts as seen in time.
ON_TIME_S = 60.0
#: Most due times that are looked at, or made up for, at once.
MAX_MISSED = 100
MAX_AHEAD = timedelta(days=366 * 30)


def zone(name: str) -> ZoneInfo:
    """A time zone by its name.

    Raises:
        UsageError: Nobody here knows it.
    """
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise UsageError(f"there is no time zone `{name}` (e.g. `Europe/Berlin`, `UTC`)") from None


def local_zone() -> str:
    """The name of this machine's time zone; UTC where it has none."""
    named = os.environ.get("TZ", "").removeprefix(":")
    if not named and Path("/etc/localtime").is_symlink():
        _, _, named = str(Path("/etc/localtime").readlink()).partition("zoneinfo/")
    try:
        return ZoneInfo(named).key or "UTC"
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return "UTC"


def times_after(cron: str, zone_name: str, after: datetime) -> Iterator[datetime]:
    """When a cron line is due after a moment, in its zone, one after the other.

    >>> berlin = datetime(2026, 3, 28, tzinfo=ZoneInfo("Europe/Berlin"))
    >>> [f"{at:%d %H:%M%z}" for at in islice(times_after("30 2 * * *", "Europe/Berlin", berlin), 3)]
    ['28 02:30+0100', '29 03:00+0200', '30 02:30+0200']

    Raises:
        UsageError: It is no cron line.
    """
    try:
        found = CronSim(cron, after.astimezone(zone(zone_name)))
    except CronSimError as error:
        said = str(error)[:1].lower() + str(error)[1:]
        hint = "minute hour day month weekday, as in `0 8 * * 1-5`"
        raise UsageError(f"`{cron}` is no cron line: {said} ({hint})") from None
    for moment in found:
        if moment - after > MAX_AHEAD:
            return
        yield moment


def next_at(schedule: Schedule, after: str) -> str | None:
    """When it is due next, in UTC; None when it never is."""
    moments = times_after(schedule.cron, schedule.zone, datetime.fromisoformat(after))
    return next(map(text_of, moments), None)


def text_of(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def due_times(schedule: Schedule, now: str) -> tuple[str, ...]:
    """Its due times up to `now` that nobody has looked at yet; of very many the latest."""
    if schedule.next_at is None or schedule.next_at > now:
        return ()
    start, end = map(datetime.fromisoformat, (schedule.next_at, now))
    back = timedelta(hours=1)
    while True:  # from the end backwards: who was away for a year has half a million minutes
        begin = max(start, end - back)
        moments = times_after(schedule.cron, schedule.zone, begin)
        found = [text_of(moment) for moment in takewhile(lambda moment: moment <= end, moments)]
        if begin == start:
            found.insert(0, schedule.next_at)
        if begin == start or len(found) >= MAX_MISSED:
            return tuple(found[-MAX_MISSED:])
        back *= 8


def wanted(schedule: Schedule, due: tuple[str, ...], now: str) -> tuple[str, ...]:
    """Which of its due times something is to begin for; the others were missed."""
    if schedule.catch_up == "all":
        return due
    last = due[-1:]
    if schedule.catch_up == "last":
        return last
    return tuple(at for at in last if seconds_between(at, now) <= ON_TIME_S)


def preview(cron: str, zone_name: str, after: datetime, count: int) -> list[dict[str, str]]:
    """The next times, each in its zone and in UTC."""
    moments = islice(times_after(cron, zone_name, after), count)
    return [{"local": each.isoformat(), "utc": text_of(each)} for each in moments]
