"""What is said as it stands: dates, time zones, addresses, servers, revisions, and texts by the
words that lead to them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from loop.binding.scene import Choice, Scene, Slot
from loop.binding.words import EMPTY
from loop.mentions import Kind
from openry.agent.evidence import SHAPES

_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?"
    r"|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)"
)
_CLOCK = r"\d{1,2}:\d\d(?::\d\d)?(?:\s?[ap]m)?|\d{1,2}\s?[ap]m"
_OFFSET = r"\s?[+-]\d\d:?\d\d(?!\d)|Z\b"
_DAY = rf"""(?:
    \d{{4}}-\d\d-\d\d | \d{{1,2}}\.\s?\d{{1,2}}\.\s?\d{{4}} | \d{{1,2}}/\d{{1,2}}/\d{{4}}
  | \d{{4}}/\d{{1,2}}/\d{{1,2}} | \d{{4}}\s?年\s?\d{{1,2}}\s?月\s?\d{{1,2}}\s?[日号]
  | \d{{1,2}}(?:st|nd|rd|th)?\s(?:of\s)?{_MONTH}\.?,?\s\d{{4}}
  | {_MONTH}\.?\s\d{{1,2}}(?:st|nd|rd|th)?,?\s\d{{4}}
)"""
_DATE = re.compile(
    rf"""(?xi)(?<![\w./-])(?:
    (?P<clock>{_CLOCK})\s+on\s+(?P<day>{_DAY})
  | {_DAY}(?:(?:T|\s|\sat\s|,\s)(?:{_CLOCK}))?(?:{_OFFSET})?
  | (?<!\d)\d{{9,10}}(?!\d)
  | \b(?:today|tomorrow|yesterday|now)\b | [今明昨]天
)"""
)
_ZONE = re.compile(
    r"\b(?:Africa|America|Antarctica|Arctic|Asia|Atlantic|Australia|Europe|Indian|Pacific|Etc|US)"
    r"/[A-Z][A-Za-z_+-]+(?:/[A-Z][A-Za-z_]+)?|\b(?:UTC|GMT)\b(?![+-]\d)|(?<![\w:])[+-]\d\d:\d\d\b"
)
#: Between a moment and the zone that it is told in.
_TOLD_IN = re.compile(r"\s*(?:,\s*|\(|in\s+|at\s+)?")
_TO = re.compile(r"(?i)(?:\b(?:to|as|into)|->|→|=>|成|为|到)\s*(?:the\s+)?$")
#: Before the later of two dates, and before the first of those that count.
_UNTIL = re.compile(r"(?i)\b(?:until|till|before|up to|to|through|by|ends?)\s*$|[到至]\s*$")
_SINCE = re.compile(r"(?i)\b(?:since|from|after|later than|starting)\s*$|[自从]\s*$")
_TAG = re.compile(
    r"(?<![\w./])v\d+(?:\.\d+)*\b(?![/.]\w)|(?<![\w/.])(?:main|master|develop)\b(?![\w/.])"
)
_NUMBERED = re.compile(
    r"(?i)\b(?:message|mail|e-?mail|number|no\.|id)\s+(?:number\s+|no\.\s*)?(?P<id>[\w@.+-]*\d[\w@.+-]*)"
    r"|第\s*(?P<nth>\d+)\s*封"
)
_FIRST = re.compile(r"(?i)\b(?:first)\s+(?:message|mail|e-?mail|one)\b|第一封")
_BACK = re.compile(
    r"(?i)\b(?:ago|before|earlier|minus|subtract|less|take (?:away )?|prior|back)\b|[之以]?前|减"
)
_ONE = re.compile(
    r"(?i)\b(?:an?|one)\s+(?:day|week|month|quarter|year|hour|minute|working|business)"
)
#: What a word says of the text after it, by the name of the parameter that wants it.
_WORDS = r"['\"“‘「]?(?P<word>[\w@.+-]*[\w])['\"”’」]?"
_LEADS = {
    "user": (
        rf"\b(?:user(?: ?name)?|login|account|logged in as)(?: is)? {_WORDS}",
        rf"\b(?:as|of|for) {_WORDS}",
        rf"(?:上|收取)\s*{_WORDS}\s*的",
    ),
    "folder": (rf"\b(?:folder|label) {_WORDS}", rf"\bthe {_WORDS} folder"),
    "sender": (rf"\b(?:from|by|sender|sent by)(?: is)? (?:the )?{_WORDS}", rf"来自\s*{_WORDS}"),
    "author": (rf"\b(?:by|author|from|of)(?: is)? {_WORDS}",),
    "to": (rf"\b(?:to|receiver|sent to|addressed to) {_WORDS}",),
    "subject": (
        rf"\b(?:subject|title|titled|about|headed|topic|concerning|regarding)(?: is)?:? {_WORDS}",
        rf"(?:主题|关于|标题)\s*[是为]?\s*{_WORDS}",
    ),
    "message": (rf"\b(?:mention(?:ing|s)?|say(?:ing|s)?|about|message) {_WORDS}",),
    "text": (
        rf"\b(?:say(?:ing|s)?|contain(?:ing|s)?|mention(?:ing|s)?|text|body|read(?:ing|s)?)"
        rf"(?: is)?:? (?:the )?(?:words? )?{_WORDS}",
        rf"\bthe words? {_WORDS}",
        rf"(?:内容|正文|写着|包含|提到)\s*[是为]?\s*{_WORDS}",
    ),
}
_JSON = re.compile(r"\{.*\}|\[\s*[{\"\d].*\]", re.S)
_COPY = re.compile(r"(?i)\b(?:cc|copy|copies)\b[^,;]*$|抄送[^，；]*$")
_FROM = re.compile(r"(?i)\b(?:from|sender|as)\s*$|发件人\s*$")


def dates_in(text: str) -> list[tuple[int, int, str]]:
    """Each date or moment: its place in the text, and how it is written."""
    found = []
    for match in _DATE.finditer(SHAPES["url"].sub(lambda m: " " * len(m.group()), text)):
        day, clock = match["day"], match["clock"]
        found.append((*match.span(), f"{day} {clock}" if day else match.group()))
    return found


def dates(slot: Slot) -> Iterator[Choice]:
    """The one that the parameter is about: by the word before it, else by their order."""
    text, found = slot.scene.text, dates_in(slot.scene.text)
    if slot.name in ("since", "until"):
        leads = _SINCE if slot.name == "since" else _UNTIL
        fits = [each for each in found if leads.search(text[: each[0]])]
    else:
        fits = found[1:] if slot.name == "other" else found
    yield from (_choice(slot.scene, *each) for each in fits)


def _choice(scene: Scene, start: int, end: int, said: str) -> Choice:
    inside = frozenset(m.start for m in scene.mentions if start <= m.start < end)
    return Choice(said, inside)


def zones(slot: Slot) -> Iterator[Choice]:
    """A zone right after a moment is the one that it is told in; another is where it leads to."""
    text, spans = slot.scene.text, dates_in(slot.scene.text)
    found = [
        m
        for m in _ZONE.finditer(text)
        if not any(start <= m.start() < end for start, end, _ in spans)
    ]
    told = [
        zone
        for zone in found
        if any(_TOLD_IN.fullmatch(text[end : zone.start()]) for _, end, _ in spans)
        and (len(found) > 1 or not _leads_on(slot, text[: zone.start()]))
    ]
    leads_on = "to" in slot.tool.parameters
    if leads_on and len(found) == 1:
        told = []
    wanted = told if leads_on and slot.name == "zone" else [z for z in found if z not in told]
    for zone in wanted if leads_on else found:
        yield Choice(zone.group())


def _leads_on(slot: Slot, before: str) -> bool:
    return "to" in slot.tool.parameters and bool(_TO.search(before))


def shaped(slot: Slot) -> Iterator[Choice]:
    """Web addresses, servers and revisions: what looks like one, in the order of the text."""
    role, text = slot.parameter.role, slot.scene.text
    for name, shape in SHAPES.items():
        if name == role:
            break
        text = shape.sub(lambda m: " " * len(m.group()), text)
    found = list(SHAPES[role].finditer(text))
    if role == "revision":
        found = sorted((*found, *_TAG.finditer(text)), key=lambda m: m.start())
    for match in found[1:] if slot.name == "other" else found:
        yield _choice(slot.scene, *match.span(), match.group())


def addresses(slot: Slot) -> Iterator[Choice]:
    """Who gets it, who gets a copy, whose it is: by the word before."""
    text = slot.scene.text
    groups: dict[str, list[str]] = {"to": [], "cc": [], "sender": []}
    for match in SHAPES["address"].finditer(text):
        before = text[: match.start()]
        of = "cc" if _COPY.search(before) else "sender" if _FROM.search(before) else "to"
        groups[of].append(match.group())
    said = groups.get(slot.name, [])
    if said:
        yield Choice(said if "array" in slot.parameter.types else said[0])


def numbered(slot: Slot) -> Iterator[Choice]:
    """Which one of several: by its number or id."""
    for match in _NUMBERED.finditer(slot.scene.text):
        yield _choice(slot.scene, *match.span(), (match["id"] or match["nth"]).rstrip("."))
    if first := _FIRST.search(slot.scene.text):
        yield _choice(slot.scene, *first.span(), "1")


def amounts(slot: Slot) -> Iterator[Choice]:
    """How many of a unit, below zero for earlier; numbers that are parts of dates are none."""
    text, spans = slot.scene.text, dates_in(slot.scene.text)
    sign = -1 if _BACK.search(slot.scene.veiled) else 1
    for mention in slot.scene.of(Kind.NUMBER):
        if isinstance(mention.value, int) and not any(s <= mention.start < e for s, e, _ in spans):
            yield Choice(sign * abs(mention.value), frozenset({mention.start}))
    if _ONE.search(text):
        yield Choice(sign)


def ports(slot: Slot) -> Iterator[Choice]:
    """The number of a port."""
    for match in re.finditer(r"(?i)(?:\bport|端口)\s*(\d+)", slot.scene.text):
        yield replace(_choice(slot.scene, *match.span(), ""), value=int(match[1]))


def led_to(slot: Slot) -> Iterator[Choice]:
    """The text after a word that tells what it is for, quoted or one word long."""
    text, literals = slot.scene.text, slot.scene.of(Kind.LITERAL)
    for lead in _LEADS.get(slot.name, ()):
        for match in re.finditer(lead, text, re.IGNORECASE):
            at = match.start("word")
            quoted = next((m for m in literals if m.start <= at < m.end), None)
            if quoted and text[quoted.start] != quoted.text[0]:
                yield Choice(quoted.text, frozenset({quoted.start}))
            elif slot.name == "user" or not _is_named(slot.scene, match["word"], at):
                yield Choice(match["word"], cost=0.05)


def _is_named(scene: Scene, word: str, at: int) -> bool:
    """Whether a word is taken already: a file, a date, a number, a server, or says nothing."""
    if not word.isascii() or word.casefold() in EMPTY:
        return True
    spans = [
        m.span() for role in ("url", "address", "host") for m in SHAPES[role].finditer(scene.text)
    ]
    spans += [(start, end) for start, end, _ in dates_in(scene.text)]
    return scene.names_file(at) or any(start <= at < end for start, end in spans)


def quoted_texts(slot: Slot) -> Iterator[Choice]:
    """Texts in quotes; addresses are none, though nothing else in the text is named like them."""
    text = slot.scene.text
    for mention in slot.scene.of(Kind.LITERAL):
        if text[mention.start] != mention.text[:1]:
            yield Choice(mention.text, frozenset({mention.start}))


def files_named(slot: Slot) -> Iterator[Choice]:
    """Files that are named and not written."""
    for mention in slot.scene.of(Kind.FILE, Kind.NEW_FILE):
        if not mention.is_target:
            yield Choice(mention.text, frozenset({mention.start}))


def bodies(slot: Slot) -> Iterator[Choice]:
    """JSON that is said as it is."""
    if match := _JSON.search(slot.scene.text):
        yield _choice(slot.scene, *match.span(), match.group())
