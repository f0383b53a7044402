"""Which files a goal reads and where its result goes."""

from __future__ import annotations

import re
from collections.abc import Iterator

from loop.binding.scene import WORK, Choice, Scene, stands_in
from loop.binding.words import EMPTY
from loop.choosing import veiled
from loop.mentions import Kind, Mention
from loop.values import FileInfo
from openry.capability.definition import ToolDefinition

#: Tools whose result is a folder, which nothing but the words around it tells from a word.
_MAKES_FOLDER = ("create_directory", "extract_archive", "save_attachments", "fetch_mail")
_NAME = r"['\"`“]?(?P<name>(?=[\w./-]*\w)[\w./-]+?)['\"`”]?(?=[\s,;:?!。，？]|\.?$|\.\s)"
#: A folder's name, the likeliest wording first.
_FOLDER_NAMES = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"\b(?:folder|directory|dir)s?,? (?:is )?(?:called|named) {_NAME}",
        rf"(?:叫做?|名为)\s*{_NAME}",
        rf"\bmkdir (?:-p )?{_NAME}",
        rf"\b(?:folder|directory) (?!(?:for|with|in|to|please|that|of|and|is)\b){_NAME}",
        rf"(?:文件夹|目录)\s*{_NAME}",
        rf"(?:\b(?:into|to|in)\s|到|进)\s*{_NAME}",
    )
)
_PRONOUN = re.compile(
    r"""(?ix)(?<!lines\ )(?<!rows\ )(?<!words\ )(?<!ones\ )(?<!entries\ )(?<!line\ )(?<!row\ )
    \b(?:it|its|them|they|their|those|these|that|this|results?|everything|left|in\ there
    |there\ are|the\ (?:rest|list|lot|output|new|sorted|remaining))\b
    |其中|它|这些|那些|结果|剩下|剩余|再"""
)
#: A task that changes a file and names no other one means the file itself.
_CHANGING = re.compile(
    r"""(?ix)\b(?:replace|change|remove|delete|drop|strip|sort|order|reorder|convert|turn|make|trim
    |reverse|flip|swap|dedup\w*|clean|tidy|renam\w+|itself|in\ place|correct|fix|number
    |overwrite|rewrite|update|modify|edit|alter)\b
    |替换|删除|去掉|排序|改成|换成|转换|覆盖|修改|更新"""
)
_ASKING = re.compile(r"(?i)^\s*(?:how|what|which|who|where|when|is|are|does|do)\b|[?？]\s*$")


def inputs_of(tool: ToolDefinition, scene: Scene) -> Iterator[Choice]:
    """The files that the tool would read, likeliest first; wrong kinds are left out."""
    names = tool.with_role("input")
    if not names or not tool.parameters[names[0]].required:
        folder = next((f for f in scene.survey.folders if _says(f, scene)), "")
        yield Choice((folder,) if folder and names else ())
        return
    said = _folder_said(tool, scene)
    if said:
        yield Choice((said,))
        return
    many = len(names) > 1 or "array" in tool.parameters[names[0]].types
    if mixed := _files_and_folders(tool, names[0], scene, many=many):
        yield mixed
        return
    for choice in _many(tool, scene) if many else _one(scene):
        if all(_fits(tool, scene.info(name)) for name in choice.value):
            yield choice


def _folder_said(tool: ToolDefinition, scene: Scene) -> str:
    """The folder that a tool for files and folders is to work on; empty when a file is named."""
    if tool.pack != "files" or any(_is_source(m, scene) for m in scene.mentions):
        return ""
    return next((folder for folder in scene.survey.folders if _says(folder, scene)), "")


def _files_and_folders(
    tool: ToolDefinition, name: str, scene: Scene, *, many: bool
) -> Choice | None:
    """What a tool is to work on that takes folders beside files; None when nothing is named."""
    if "folder" not in tool.parameters[name].description.lower():
        return None
    named = [m for m in scene.mentions if _is_source(m, scene)]
    folders = [f for f in scene.survey.folders if f not in EMPTY and _says(f, scene)]
    if named and not many:
        return None
    found = (*(m.text for m in named), *folders)
    used = frozenset(m.start for m in named)
    return Choice(found if many else found[:1], used) if found else None


def _says(folder: str, scene: Scene) -> bool:
    pattern = rf"(?<![\w/.-]){re.escape(folder)}(?![\w-]|/\w|\.\w)"
    return any(not scene.names_file(m.start()) for m in re.finditer(pattern, scene.text))


def _one(scene: Scene) -> Iterator[Choice]:
    named = [m for m in scene.mentions if _is_source(m, scene)]
    for mention in named:
        yield Choice((mention.text,), frozenset({mention.start}))
    if named:
        return
    refers = bool(_PRONOUN.search(scene.text)) or scene.sequel
    beside = not refers and bool(scene.previous) and not scene.previous[0].startswith(WORK)
    for rank, name in enumerate(scene.previous):
        info = scene.info(name)
        scalar = 1.0 if info and info.kind == "number" else 0.0
        yield Choice((name,), cost=(0.1 if beside else 0.0) + 0.1 * rank + scalar)
    source = scene.last.inputs[0] if scene.last and scene.last.inputs else ""
    if source and source not in scene.previous:
        alone = beside and len(scene.last.inputs if scene.last else ()) == 1
        yield Choice((source,), cost=0.02 if alone else 0.25)
    if not scene.previous:
        files = [f for f in scene.survey.files[:8] if f.kind != "binary"]
        for file in files:
            yield Choice((file.name,), cost=0.1 if _spoken_of(file, scene) else 0.3)


def _spoken_of(file: FileInfo, scene: Scene) -> bool:
    """Whether the text says the name without its ending, or one of the columns."""
    stem = file.name.rpartition("/")[2].partition(".")[0].rstrip("s")
    words = [word for word in (stem, *file.columns) if len(word) > 1]
    return any(stands_in(word, scene.text) or stands_in(f"{word}s", scene.text) for word in words)


def _many(tool: ToolDefinition, scene: Scene) -> Iterator[Choice]:
    named = [m for m in scene.mentions if _is_source(m, scene)]
    if len(named) > 1:
        yield Choice(_in_order(named, scene), frozenset(m.start for m in named))
    globs = scene.of(Kind.EXTENSION)
    if globs and not named:
        ending = globs[0].text[1:]
        files = tuple(n for n in scene.survey.names if "/" not in n and n.endswith(ending))
        if len(files) > 1:
            yield Choice(files, frozenset({globs[0].start}))
    if len(named) == 1 and scene.previous and len(tool.with_role("input")) == 2:
        yield Choice((scene.previous[0], named[0].text), frozenset({named[0].start}), 0.1)


#: `B after A` and `B onto the end of A` put A first.
_BEHIND = re.compile(r"(?i)\b(?:after|behind|below|(?:on ?to|to|at) the (?:end|bottom) of)\s*$")
_AHEAD = re.compile(r"(?i)\bfirst\b")


def _in_order(named: list[Mention], scene: Scene) -> tuple[str, ...]:
    """Two files in the order meant, more of them as they are said."""
    names = [m.text for m in named]
    if len(named) == 2:
        between = scene.text[named[0].end : named[1].start]
        after = scene.text[named[1].end : named[1].end + 8]
        if _BEHIND.search(between) or re.match(r"(?i)\s*\(?first\b", after):
            names.reverse()
    return tuple(names)


def _is_source(mention: Mention, scene: Scene) -> bool:
    if mention.kind is Kind.FILE:
        return not mention.is_target
    return mention.kind is Kind.NEW_FILE and mention.text in scene.made and not mention.is_target


_OF_ARCHIVES = ("extract_archive", "list_archive")


def _fits(tool: ToolDefinition, info: FileInfo | None) -> bool:
    """Whether a file's kind suits the tool's pack: tables for `csv_*`, JSON for `json_*`."""
    if info is None:
        return True
    if tool.name.startswith(("csv_", "table_")):
        return info.kind == "csv"
    if tool.name.startswith("json_"):
        return info.kind == "json"
    if tool.name.startswith("sqlite_") or tool.name in _OF_ARCHIVES:
        return info.kind == "binary"
    if tool.name == "text_column":
        return info.kind == "text"
    return info.kind != "binary" or tool.pack == "files"


def output_of(tool: ToolDefinition, scene: Scene, inputs: tuple[str, ...]) -> Choice | None:
    """Where the result goes; None when the fragment names two new files, hence two operations."""
    fresh = [m for m in scene.of(Kind.NEW_FILE, Kind.FILE) if _is_new(m, scene, inputs)]
    if len({m.text for m in fresh}) > 1:
        return None
    names = tool.with_role("output")
    if tool.name in _MAKES_FOLDER and not fresh:
        folder = _folder_named(scene)
        return Choice(folder) if folder else None
    if fresh:
        cost = 0.0 if names else 0.8
        starts = frozenset(m.start for m in fresh)
        return Choice(fresh[0].text, starts, cost + _ending_cost(tool, fresh[0].text))
    if scene.answer and names:
        return Choice(_changed(tool, scene, inputs) or scene.answer)
    return Choice(scene.intermediate if names else "")


def _folder_named(scene: Scene) -> str:
    """The folder to make or to fill; empty when no words name one."""
    for pattern in _FOLDER_NAMES:
        for match in pattern.finditer(scene.text):
            name = match["name"]
            guessed = pattern is _FOLDER_NAMES[-1] and name.casefold() in EMPTY
            if not guessed and not scene.names_file(match.start("name")):
                return name
    return ""


def _is_new(mention: Mention, scene: Scene, inputs: tuple[str, ...]) -> bool:
    unmade = mention.kind is Kind.NEW_FILE and mention.text not in scene.made
    return (mention.is_target or unmade) and mention.text not in inputs


def _changed(tool: ToolDefinition, scene: Scene, inputs: tuple[str, ...]) -> str:
    """The file that is to change in place, or "": all that is done to it must be a change."""
    if tool.returns.format in ("number", "none") or len(inputs) != 1:
        return ""
    name, said = inputs[0], [scene.veiled]
    for goal in reversed(scene.before):
        if name in goal.outputs and len(goal.inputs) == 1:
            name = goal.inputs[0]
            said.append(veiled(goal.text))
    return name if all(map(is_change, said)) and not name.startswith(WORK) else ""


def is_change(text: str) -> bool:
    """Whether a text asks to change what it names, and does not ask for something of it."""
    return bool(_CHANGING.search(text)) and not _ASKING.search(text)


def _ending_cost(tool: ToolDefinition, name: str) -> float:
    """A bare number does not go into a table; JSON and CSV results like their own ending."""
    ending, gives = name.rpartition(".")[2].lower(), tool.returns.format
    if ending in ("csv", "json") and gives in ("number", "lines" if ending == "json" else "number"):
        return 0.4
    if gives in ("json", "csv") and ending in ("csv", "json") and ending != gives:
        return 1.0
    return 0.25 if gives == "json" and ending != "json" else 0.0
