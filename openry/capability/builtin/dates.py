"""The `dates` pack: dates read in common forms, written, moved and compared, zones always named."""

from __future__ import annotations

import json
import re
from calendar import monthrange
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo

from openry.capability.builtin.failure import ToolFailure, note

_MONTHS = "january february march april may june july august september october november december"
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_NAMES = {name[:3]: number for number, name in enumerate(_MONTHS.split(), 1)}
_MONTH = "|".join(sorted({*_MONTHS.split(), *_NAMES, "sept"}, key=len, reverse=True))
_ISO = re.compile(r"(\d{4})-(\d{1,2})-(\d{1,2})")
_BY_YEAR = re.compile(r"(\d{4})[/.](\d{1,2})[/.](\d{1,2})")
_COMPACT = re.compile(r"(\d{4})(\d{2})(\d{2})")
_DOTTED = re.compile(r"(\d{1,2})\.\s?(\d{1,2})\.\s?(\d{4})")
_SLASHED = re.compile(r"(\d{1,2})[/-](\d{1,2})[/-](\d{4})")
_CHINESE = re.compile(r"(\d{4})\s*年\s*(\d{1,2})\s*月\s*(\d{1,2})\s*[日号]")
_DAY_FIRST = re.compile(
    rf"(\d{{1,2}})(?:st|nd|rd|th)?(?:\s+of)?[\s-]+({_MONTH})\.?,?[\s-]+(\d{{4}})"
)
_MONTH_FIRST = re.compile(rf"({_MONTH})\.?\s+(\d{{1,2}})(?:st|nd|rd|th)?,?\s+(\d{{4}})")
_WEEK = re.compile(r"(\d{4})-?w(\d{2})(?:-?(\d))?")
_WEEKDAY = re.compile(r"(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?\.?,?\s+")
_TIME = re.compile(
    r"(?P<hour>\d{1,2})(?::(?P<minute>\d{2})(?::(?P<second>\d{2})(?:[.,](?P<part>\d{1,9}))?)?)?"
    r"\s*(?P<half>[ap]\.?m\.?)?\s*(?P<zone>z|utc|gmt|[+-]\d{2}:?(?:\d{2})?)?"
)
_STAMP = re.compile(r"@?-?\d{9,12}(\.\d+)?")
_STYLES: dict[str, str] = {
    "iso": "",
    "date": "%Y-%m-%d",
    "time": "%H:%M:%S",
    "long": "",
    "short": "",
    "european": "%d.%m.%Y",
    "british": "%d/%m/%Y",
    "us": "%m/%d/%Y",
    "chinese": "",
    "week": "%G-W%V-%u",
    "ordinal": "%Y-%j",
    "rfc2822": "",
    "epoch": "",
    "compact": "%Y%m%d",
}
_EXACT_S = {"seconds": 1, "minutes": 60, "hours": 3600}
_IN_DAYS = {"days": 1, "weeks": 7}
_IN_MONTHS = {"months": 1, "quarters": 3, "years": 12}


# --- the tools ----------------------------------------------------------------------------


def parse_date(text: str, zone: str, order: str) -> bytes:
    when = _read(text, zone, order)
    day = _day(when)
    iso = day.isocalendar()
    told = {
        "iso": _iso(when),
        "year": day.year,
        "month": day.month,
        "day": day.day,
        "weekday": _DAYS[day.weekday()],
        "week": f"{iso.year}-W{iso.week:02}",
        "day_of_year": day.timetuple().tm_yday,
        "quarter": (day.month + 2) // 3,
        "leap_year": monthrange(day.year, 2)[1] == 29,
        "days_in_month": monthrange(day.year, day.month)[1],
    }
    if isinstance(when, datetime):
        told |= {"epoch_s": int(when.timestamp()), "utc_offset": when.strftime("%z")}
    return _line(json.dumps(told, ensure_ascii=False))


def format_date(text: str, style: str, zone: str, order: str) -> bytes:
    return _line(_styled(_read(text, zone, order), style))


def shift_date(text: str, amount: int, unit: str, zone: str, order: str) -> bytes:
    """Days and longer move the calendar and keep the clock; hours and shorter are exact."""
    when = _read(text, zone, order)
    try:
        return _line(_iso(_shifted(when, amount, unit, zone)))
    except (OverflowError, ValueError):
        raise ToolFailure("bad_arguments", "the result lies outside the years 1 to 9999") from None


def date_difference(text: str, other: str, unit: str, zone: str, order: str) -> bytes:
    first, second = _read(text, zone, order), _read(other, zone, order)
    if unit in _EXACT_S:
        # Moments of one zone would be subtracted as their clocks show them, 24 h on any day.
        one_s, two_s = (_moment(each, zone).astimezone(UTC) for each in (first, second))
        seconds = (two_s - one_s).total_seconds()
        return _line(_plain(seconds / _EXACT_S[unit]))
    one, two = _day(first), _day(second)
    if unit == "business_days":
        return _line(str(_business_days(one, two)))
    if unit in _IN_DAYS:
        return _line(_plain((two - one).days / _IN_DAYS[unit]))
    return _line(str(_whole_months(one, two) // _IN_MONTHS[unit] if two >= one
                     else -(_whole_months(two, one) // _IN_MONTHS[unit])))  # fmt: skip


def convert_time_zone(text: str, to: str, zone: str, order: str) -> bytes:
    when = _read(text, zone, order)
    if not isinstance(when, datetime):
        raise ToolFailure("bad_arguments", f"`{text}` has no time of day, which a zone needs")
    return _line(_iso(when.astimezone(_zone(to))))


def current_time(zone: str, style: str) -> bytes:
    return _line(_styled(datetime.now(_zone(zone)).replace(microsecond=0), style))


# --- reading ------------------------------------------------------------------------------

Moment = date | datetime


def _read(text: str, zone: str, order: str) -> Moment:
    """A date, or a moment with its zone where a time of day is given.

    Raises:
        ToolFailure: It is neither, or may mean two days.
    """
    words = re.sub(r"\s+", " ", text.strip()).casefold()
    here = _zone(zone)
    if _STAMP.fullmatch(words):
        return _from_epoch(words, here)
    today = datetime.now(here).date()
    named = {"today": 0, "now": 0, "tomorrow": 1, "yesterday": -1, "今天": 0, "明天": 1, "昨天": -1}
    if words == "now":
        return datetime.now(here).replace(microsecond=0)
    if words in named:
        return today + timedelta(days=named[words])
    rest = _WEEKDAY.sub("", words, count=1) if _WEEKDAY.match(words) else words
    try:
        day, end = _find_day(rest, order, text)
        after = rest[end:].removeprefix(",").strip().removeprefix("t").removeprefix("at ").strip()
        return _at(day, after, here, text) if after else day
    except ValueError as error:
        raise ToolFailure("bad_arguments", f"`{text}` is no date: {error}") from None


def _from_epoch(words: str, here: tzinfo) -> datetime:
    try:
        return datetime.fromtimestamp(float(words.removeprefix("@")), here)
    except (OverflowError, ValueError, OSError):
        raise ToolFailure("bad_arguments", f"`{words}` lies outside the years 1 to 9999") from None


def _find_day(words: str, order: str, text: str) -> tuple[date, int]:
    """The day at the start of `words`, and where it ends there."""
    for pattern, places in (
        (_ISO, (1, 2, 3)), (_BY_YEAR, (1, 2, 3)), (_CHINESE, (1, 2, 3)), (_DOTTED, (3, 2, 1)),
        (_DAY_FIRST, (3, 2, 1)), (_MONTH_FIRST, (3, 1, 2)),
    ):  # fmt: skip
        match = pattern.match(words)
        if match:
            year, month, day = (match[place] for place in places)
            return date(int(year), _NAMES.get(month[:3]) or int(month), int(day)), match.end()
    if match := _SLASHED.match(words):
        return _slashed(match, order, text), match.end()
    if match := _WEEK.match(words):
        return date.fromisocalendar(int(match[1]), int(match[2]), int(match[3] or 1)), match.end()
    if match := _COMPACT.match(words):
        return date(*(int(part) for part in match.groups())), match.end()
    raise ToolFailure(
        "bad_arguments", f"`{text}` is no date that is understood; write it as 2026-01-31"
    )


def _slashed(match: re.Match[str], order: str, text: str) -> date:
    """`31/12/2026` can only be one day; `01/02/2026` is two, so it must be said which."""
    first, second, year = (int(part) for part in match.groups())
    if order == "ask":
        if first <= 12 and second <= 12 and first != second:
            raise ToolFailure(
                "bad_arguments",
                f"`{text}` may be {date(year, second, first)} or {date(year, first, second)};"
                " say `order: day_first` or `order: month_first`",
            )
        order = "month_first" if second > 12 else "day_first"
    return date(year, first, second) if order == "month_first" else date(year, second, first)


def _at(day: date, words: str, here: tzinfo, text: str) -> datetime:
    match = _TIME.fullmatch(words)
    if match is None:
        raise ToolFailure("bad_arguments", f"`{text}`: `{words}` is no time of day")
    hour = int(match["hour"])
    if match["half"]:
        if not 1 <= hour <= 12:
            raise ValueError("an hour with am or pm is 1 to 12")
        hour = hour % 12 + (12 if match["half"][0] == "p" else 0)
    clock = (int(match["minute"] or 0), int(match["second"] or 0))
    micro = int((match["part"] or "0").ljust(6, "0")[:6])
    zone = _offset(match["zone"]) if match["zone"] else here
    return _existing(datetime(day.year, day.month, day.day, hour, *clock, micro, tzinfo=zone))


def _offset(text: str) -> tzinfo:
    if text in ("z", "utc", "gmt"):
        return UTC
    digits = text[1:].replace(":", "").ljust(4, "0")
    span = timedelta(hours=int(digits[:2]), minutes=int(digits[2:]))
    return timezone(-span if text[0] == "-" else span)


def _existing(when: datetime) -> datetime:
    """A time that clocks leave out is moved forward, as they are; one they show twice is told."""
    there = when.astimezone(UTC).astimezone(when.tzinfo)
    if there.replace(tzinfo=None) != when.replace(tzinfo=None):
        note(f"clocks go forward over {when:%Y-%m-%d %H:%M}; {there:%H:%M} was taken")
        return there
    if when.replace(fold=1).utcoffset() != when.utcoffset():
        note(f"clocks show {when:%Y-%m-%d %H:%M} twice; the first was taken")
    return when


def _zone(name: str) -> tzinfo:
    """A zone by its name: `UTC`, `Europe/Berlin`, `+02:00`. No file but the zone table is read."""
    if name.upper() in ("UTC", "Z", "GMT"):
        return UTC
    if re.fullmatch(r"[+-]\d{2}:?(\d{2})?", name):
        try:
            return _offset(name)
        except ValueError:
            raise ToolFailure("bad_arguments", f"`{name}` is no offset") from None
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError, RuntimeError):
        raise ToolFailure("bad_arguments", f"`{name}` is no time zone{_near_zone(name)}") from None


def _near_zone(name: str) -> str:
    from difflib import get_close_matches
    from zoneinfo import available_timezones

    zones = available_timezones()
    last = {zone.rpartition("/")[2].casefold(): zone for zone in sorted(zones)}
    word = name.replace(" ", "_").casefold()
    near = last.get(word) or next(iter(get_close_matches(name, zones, n=1, cutoff=0.6)), "")
    return f" (did you mean `{near}`?)" if near else "; write it as Europe/Berlin or +02:00"


# --- computing ----------------------------------------------------------------------------


def _shifted(when: Moment, amount: int, unit: str, zone: str) -> Moment:
    if unit in _EXACT_S:
        moment = _moment(when, zone)
        later = moment.astimezone(UTC) + timedelta(seconds=amount * _EXACT_S[unit])
        return later.astimezone(moment.tzinfo)
    if unit == "business_days":
        day = _business_shift(_day(when), amount)
    elif unit in _IN_DAYS:
        day = _day(when) + timedelta(days=amount * _IN_DAYS[unit])
    else:
        day = _months_on(_day(when), amount * _IN_MONTHS[unit])
    if isinstance(when, datetime):
        return _existing(when.replace(year=day.year, month=day.month, day=day.day, fold=0))
    return day


def _months_on(day: date, months: int) -> date:
    """The same day of a later month, or its last one: 31 January and a month is 28 February."""
    year, month = divmod(day.year * 12 + day.month - 1 + months, 12)
    if not 1 <= year <= 9999:
        raise OverflowError
    return date(year, month + 1, min(day.day, monthrange(year, month + 1)[1]))


def _business_shift(day: date, amount: int) -> date:
    """So many days from Monday to Friday on; from a weekend the next one counts first."""
    step = 1 if amount > 0 else -1
    weeks, rest = divmod(abs(amount), 5)
    while weeks and day.weekday() > 4:  # into the week first, so that whole weeks can be skipped
        day -= timedelta(days=step)
    day += timedelta(days=step * 7 * weeks)
    for _ in range(rest):
        day += timedelta(days=step)
        while day.weekday() > 4:
            day += timedelta(days=step)
    return day


def _business_days(first: date, second: date) -> int:
    """Days from Monday to Friday from the first (counted) to the second (not counted)."""
    if second < first:
        return -_business_days(second, first)
    weeks, rest = divmod((second - first).days, 7)
    return weeks * 5 + sum((first.weekday() + each) % 7 < 5 for each in range(rest))


def _whole_months(first: date, second: date) -> int:
    months = (second.year - first.year) * 12 + second.month - first.month
    return months - (_months_on(first, months) > second)


def _moment(when: Moment, zone: str) -> datetime:
    """A date is its midnight in the zone."""
    if isinstance(when, datetime):
        return when
    return _existing(datetime(when.year, when.month, when.day, tzinfo=_zone(zone)))


def _day(when: Moment) -> date:
    return when.date() if isinstance(when, datetime) else when


# --- writing ------------------------------------------------------------------------------


def _styled(when: Moment, style: str) -> str:
    day = _day(when)
    month, weekday = _MONTHS.split()[day.month - 1].capitalize(), _DAYS[day.weekday()]
    made: dict[str, Callable[[], str]] = {
        "iso": lambda: _iso(when),
        "long": lambda: f"{weekday}, {day.day} {month} {day.year:04}",
        "short": lambda: f"{day.day} {month[:3]} {day.year:04}",
        "chinese": lambda: f"{day.year}年{day.month}月{day.day}日",
        "rfc2822": lambda: _mail_style(when),
        "epoch": lambda: str(int(_moment(when, "UTC").timestamp())),
    }
    if style in made:
        return made[style]()
    if style == "time" and not isinstance(when, datetime):
        raise ToolFailure("bad_arguments", "a date without a time of day has no time to write")
    text = (
        _STYLES[style].replace("%Y", f"{day.year:04}").replace("%G", f"{day.isocalendar().year:04}")
    )
    return when.strftime(text)


def _mail_style(when: Moment) -> str:
    from email.utils import format_datetime

    return format_datetime(_moment(when, "UTC"))


def _iso(when: Moment) -> str:
    text = when.isoformat()
    return text.removesuffix("+00:00") + "Z" if text.endswith("+00:00") else text


def _plain(number: float) -> str:
    return str(int(number)) if number == int(number) else f"{number:.6f}".rstrip("0")


def _line(text: str) -> bytes:
    return text.encode() + b"\n"
