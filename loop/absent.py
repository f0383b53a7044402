"""Files that a task would read and that are not there: named, never replaced by others.

A name that does not exist is most often one to write. It is one to read where the words beside it
say so, or where no other file could be meant.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import get_close_matches

from loop.mentions import Kind, Mention
from loop.values import Candidate, Survey

#: How alike a name must be to that of a file to be taken for a slip, 0 to 1.
_NEAR = 0.8
#: So many names are shown of what is there.
_SHOWN = 5
_FILLERS = r"(?:(?:the|a|an|this|that|my|our|its|whole|entire|given|file|table|log)\s+)*['\"`]?$"
#: What is read stands behind these.
_READ = re.compile(rf"(?i)\b(?:of|from|inside|through|throughout|within)\s+{_FILLERS}")
_READ_ZH = re.compile(r"(?:把|将|从|对|按|统计|读取|打开|处理|计算|删除)\s*['\"“]?$")
_READ_ZH_AFTER = re.compile(r"^['\"”]?\s*(?:的|(?:里|中)(?:面)?的|这个文件的)")
#: A word alone before the name, at the beginning of a sentence or a part of one: `then sort X`.
_ORDER = re.compile(
    r"(?i)(?:^|[.;:!?,]\s*|\b(?:and|then|please|also|now|first|next|finally|to)\s+)"
    rf"(?:(?:then|please|also|now|first|next|finally)\s+)*(?P<verb>[a-z]{{3,}})\s+{_FILLERS}"
)
#: Verbs whose object is made, and words that are no verbs.
_MAKING = frozenset(
    """
    create make write build generate produce output prepare draft compose fill save store put record
    export dump print give get call name want need form construct assemble overwrite update leave
    return deliver provide send begin have list into onto with under called named than that this the
    for per via plus only just not and then goes new also too like as file output result
    """.split()
)
#: Verbs whose object may be a text, which looks like a name by chance.
_TEXTUAL = frozenset("replace change swap substitute exchange".split())
#: Words after a name that say what will stand in it.
_MADE = re.compile(
    r"(?i)^['\"`]?\s*[,(]?\s*(?:which |that )?(?:should|must|shall|will|(?:needs?|has) to"
    r"|is (?:to|where)|gets?|receives?|=|:|←|<-|please)"
)
_TOGETHER = re.compile(r"(?i)^['\"`]?,?\s*(?:and|or|plus|with|&|和|与|、)\s*(?:the\s+)?['\"`]?$")
_IN = re.compile(rf"(?i)\bin\s+{_FILLERS}")
#: A file by a path that leads out of the folder, or starts at another place than it.
_ELSEWHERE = re.compile(
    r"(?i)\b(?:to|into|as|from|of|in)\s+['\"`]?(?P<path>(?:~|\.\.)?/(?:[\w.-]+/)*[\w-]+\.[a-z]\w{0,7})\b"
)
_QUOTED_NAME = re.compile(r"[^\n/]+\.[A-Za-z][A-Za-z0-9]{0,7}")


def absent(text: str, mentions: Sequence[Mention], survey: Survey) -> str:
    """What to say of the first file that `text` reads and that is not there, or that is elsewhere;
    "" when there is none."""
    if elsewhere := _ELSEWHERE.search(text):
        return f"`{elsewhere['path']}` is not in the folder: name a file as it stands in there"
    unnamed = not _names_source(mentions)
    for at, mention in _strange_names(mentions):
        near = get_close_matches(mention.text, survey.names, n=1, cutoff=_NEAR)
        if _is_read(text, mentions, at) or (unnamed and near):
            return _sentence(mention.text, survey, near)
    return ""


def vague(
    text: str, mentions: Sequence[Mention], survey: Survey, candidate: Candidate | None
) -> str:
    """What to say when the best reading takes a file that `text` does not speak of, where the
    folder leaves a choice; or when there is none, since the only name is that of no file."""
    if not survey.files or _names_source(mentions):
        return ""
    strange = _unspoken(mentions, candidate) if candidate else ""
    if candidate and not strange:
        return ""
    for _, mention in _strange_names(mentions, quoted=True):
        before, after = text[: mention.start], text[mention.end :]
        if not _MADE.match(after) and not _is_made(before):
            return _sentence(mention.text, survey, [])
    inside = [m for m in mentions if m.is_target and _IN.search(text[: m.start])]
    if candidate is None and len(inside) == 1:
        return _sentence(inside[0].text, survey, [])
    if strange and _leaves_choice(text, strange, survey):
        return f"the task does not say which file to read ({_there(survey)})"
    return ""


def _names_source(mentions: Sequence[Mention]) -> bool:
    return any(
        m.kind is Kind.EXTENSION or (m.kind is Kind.FILE and not m.is_target) for m in mentions
    )


def _unspoken(mentions: Sequence[Mention], candidate: Candidate) -> str:
    """The first file that `candidate` reads and that is neither named nor made before."""
    named = {m.text for m in mentions} | {n for goal in candidate.goals for n in goal.outputs}
    return next((n for goal in candidate.goals for n in goal.inputs if n not in named), "")


def _strange_names(
    mentions: Sequence[Mention], *, quoted: bool = False
) -> Iterator[tuple[int, Mention]]:
    """The first place of each name that looks like a file's, is none, and is written nowhere."""
    written = {m.text for m in mentions if m.is_target}
    seen: set[str] = set()
    for at, m in enumerate(mentions):
        in_quotes = quoted and m.kind is Kind.LITERAL and _QUOTED_NAME.fullmatch(m.text)
        if (m.kind is Kind.NEW_FILE or in_quotes) and m.text not in written | seen:
            yield at, m
        seen.add(m.text)


def _is_read(text: str, mentions: Sequence[Mention], at: int) -> bool:
    """Whether the words beside a name say that it is read."""
    mention = mentions[at]
    before, after = text[: mention.start], text[mention.end :]
    if _READ.search(before) or _READ_ZH.search(before) or _is_object(before):
        return True
    if _MADE.match(after):
        return False
    if _READ_ZH_AFTER.match(after) and not re.search(r"在\s*$", before):
        return True
    pairs = [(at - 1, at)] * (at > 0) + [(at, at + 1)] * (at + 1 < len(mentions))
    return any(
        _TOGETHER.match(text[mentions[one].end : mentions[other].start])
        and any(mentions[i].kind is Kind.FILE and not mentions[i].is_target for i in (one, other))
        for one, other in pairs
    )


def _is_object(before: str) -> bool:
    """Whether a verb of reading stands before: `then sort X`."""
    order = _ORDER.search(before)
    return order is not None and not _bases(order["verb"]) & (_MAKING | _TEXTUAL)


def _is_made(before: str) -> bool:
    order = _ORDER.search(before)
    return order is not None and bool(_bases(order["verb"]) & _MAKING)


def _bases(verb: str) -> set[str]:
    """A verb and what it may be a form of: `making`, `make`."""
    verb = verb.casefold()
    stem = verb.removesuffix("ing")
    return {verb, stem, f"{stem}e", stem[:-1]} if stem != verb else {verb}


def _leaves_choice(text: str, chosen: str, survey: Survey) -> bool:
    """Whether another file could as well be meant, and nothing said points to the chosen one."""
    info = survey.get(chosen)
    if info is None:
        return False
    said = {c for c in info.columns if _is_said(c, text)}
    alike = [f for f in survey.files if f.kind == info.kind and said <= set(f.columns)]
    stem = chosen.rpartition("/")[2].partition(".")[0]
    return len(alike) > 1 and not _is_said(stem.rstrip("s"), text)


def _is_said(word: str, text: str) -> bool:
    return bool(word) and re.search(rf"(?i)(?<!\w){re.escape(word)}s?(?!\w)", text) is not None


def _sentence(name: str, survey: Survey, near: Sequence[str]) -> str:
    hint = f"did you mean `{near[0]}`?" if near else _there(survey)
    return f"no file `{name}` in the folder ({hint})"


def _there(survey: Survey) -> str:
    if not survey.files:
        return "it is empty"
    more = len(survey.files) - _SHOWN
    return f"it has {', '.join(survey.names[:_SHOWN])}{f' and {more} more' if more > 0 else ''}"
