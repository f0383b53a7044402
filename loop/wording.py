"""A second reader: a small controlled English and Chinese, understood wholly or not at all.

It shares nothing with the embeddings that choose capabilities. A sentence counts as understood
only when every word of it has a place in one pattern, so an unknown word means silence, never a
guess. The patterns are data (`templates/reading`). What was understood can be computed
independently (`loop.reference`), and a result is called strongly accepted only where both agree.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from loop.binding.files import is_change
from loop.grammar import token_of
from loop.lexicon import COMPARISONS, FURTHER, JOINS, LEVELS, PLACES, RANKS, Lexicon, sign_of
from loop.mentions import Kind, Mention
from loop.phrases import Phrase, Tokens, readings_of, tokenize
from loop.tables import CONDITION, DEGREES, is_number

Args = dict[str, Any]
#: Where an answer goes when the task names no file for it.
ANSWER = "answer.txt"
_MOST_READINGS = 256
#: Endings of files that are tables. A table made from a table stays one, with its heading.
TABLES = (".csv", ".tsv")
#: Kinds after which `them` may be what was taken away.
REMOVALS = frozenset(("drop_lines", "drop_empty", "skip", "skip_last"))
_TABLE_KINDS = frozenset(
    "rows columns csv_sort csv_sort2 json_to_csv drop_columns table_join grouped stack".split()
)
#: Kinds with a condition on a column.
_CONDITIONAL = frozenset(
    "rows count_rows_where picked figure_where json_rows json_count_where json_picked".split()
)
#: What a condition becomes where the rows that meet it are to go.
_OPPOSITE = {
    each: other
    for pair in (
        ("==", "!="),
        ("<", ">="),
        (">", "<="),
        ("contains", "not_contains"),
        ("empty", "not_empty"),
        ("starts", "not_starts"),
        ("ends", "not_ends"),
    )
    for each, other in (pair, pair[::-1])
}
#: Slots for numbers, and those of them that need not be whole or positive.
NUMBERS = (
    "limit start stop upto longer longest_min shorter longest_max gt_n ge_n lt_n le_n"
).split()
BOUNDS = frozenset("upto gt_n ge_n lt_n le_n".split())
_LINE_KINDS = frozenset(
    (
        "keep_lines drop_lines drop_empty count_lines count_kept count_unique sort unique "
        "unique_sorted first last reverse tally"
    ).split()
)


@dataclass(frozen=True, slots=True)
class Op:
    """One understood operation, in terms of what must come out, not of a tool.

    Attributes:
        kind: A key of `loop.reference.COMPUTE`.
        open: Conventions that the wording leaves open; each variant is an argument set laid over
            `args` (`inputs` over the inputs). A result is only sure when all variants agree.
    """

    kind: str
    args: Args
    inputs: tuple[str, ...]
    output: str
    open: tuple[Args, ...] = ({},)


def understand(text: str, mentions: Sequence[Mention]) -> tuple[Op, ...]:
    """The operations that the whole sentence says, or () when any word of it is unclear.

    Where it can be read in several ways, the one with the fewest operations, if it stands alone.
    """
    found = readings(text, mentions)
    fewest = min(map(len, found), default=0)
    best = [ops for ops in found if len(ops) == fewest]
    first = best[0] if best else ()
    if any(_closed(ops) != _closed(first) for ops in best):
        return ()
    return tuple(
        replace(op, open=tuple({repr(way): way for each in same for way in each.open}.values()))
        for op, same in zip(first, zip(*best, strict=True), strict=True)
    )


def _closed(ops: Sequence[Op]) -> tuple[Op, ...]:
    """The operations without what their wording leaves open."""
    return tuple(replace(op, open=()) for op in ops)


def readings(text: str, mentions: Sequence[Mention]) -> tuple[tuple[Op, ...], ...]:
    """Every way to read the whole sentence; a result is only sure when all give the same."""
    return readings_in(*tokenize(text, mentions))


def readings_in(tokens: Tokens, lexicon: Lexicon) -> tuple[tuple[Op, ...], ...]:
    """The same of a sentence that was cut into words."""
    found: dict[str, tuple[Op, ...]] = {}
    for phrases in readings_of(tokens, lexicon):
        ops = _resolve(tokens, lexicon, phrases)
        if ops:
            found[repr(ops)] = ops
        if len(found) > _MOST_READINGS:
            return ()
    return tuple(found.values())


def _resolve(tokens: Tokens, lexicon: Lexicon, phrases: Sequence[Phrase]) -> tuple[Op, ...]:
    """The phrases as operations, or () where one of them cannot be meant."""
    ops: list[Op] = []
    taking = tokens.chinese or not _TAKING.isdisjoint(tokens.words)
    for index, phrase in enumerate(phrases):
        if not _clear(
            phrase,
            ops,
            left=not taking or (index > 0 and ("rest", True) in phrases[index - 1].remarks),
        ):
            return ()
        op = _operation(tokens, lexicon, phrase, ops, last=index + 1 == len(phrases))
        if op is None:
            return ()
        if ops and ops[-1].output.startswith(".work/"):
            same = ops[-1].kind == op.kind or {ops[-1].kind, op.kind} == {"first", "last"}
            twice = same and op.kind in _ONE_BY_ONE and not phrase.sequel
            if ops[-1].kind == "replace" and "item" in dict(phrase.slots):
                return ()  # `a with b and c with d` are two that are replaced
            if twice or ops[-1].output not in op.inputs:
                return ()  # `errors and warnings` are not the warnings among the errors
        ops.append(op)
    outputs = [op.output for op in ops]
    return tuple(ops) if len(set(outputs)) == len(outputs) else ()


def _operation(
    tokens: Tokens, lexicon: Lexicon, phrase: Phrase, before: Sequence[Op], *, last: bool
) -> Op | None:
    kind, args = phrase.rule.kind, dict(phrase.rule.args)
    said = {name for name, _ in phrase.remarks}
    taking = "keep_lines" if phrase.rule.of == "kept" else kind
    if not all(_fits(lexicon, taking, remark) for remark in phrase.remarks):
        return None
    inputs = _inputs(tokens, lexicon, phrase, before)
    if not inputs:
        return None
    answered = last and not phrase.output
    if answered and not _leaves_answer(tokens):
        return None
    if answered:
        output = ANSWER
    elif phrase.output == "=":
        output = inputs[0][0]
    else:
        output = tokens.value(phrase.output) if phrase.output else f".work/{len(before) + 1}.txt"
    if not _suits(phrase, inputs[0], before):
        return None
    if phrase.rule.of == "once" and "once" not in said:
        return None
    if phrase.rule.of == "number" and "number" not in said:
        return None
    if kind == "column" and "rest" in said and ("heading", "dropped") not in phrase.remarks:
        return None  # the rest of the table
    table = phrase.rule.reads == "csv" and output.endswith(TABLES)
    if phrase.rule.of == "whole" and not table and "lines" not in said:
        return None  # `everybody who …` may be their names alone
    of_table = inputs[0][0].lower().endswith(TABLES)
    if kind == "count_lines" and of_table and _ROWS.search(tokens.bare):
        return None  # of a table, rows are its records
    tabled = any(op.output == inputs[0][0] and op.kind in _TABLE_KINDS for op in before)
    if kind == "convert":
        kind = _conversion(inputs[0][0], output)
    slots = _slots(tokens, phrase)
    if not kind or slots is None:
        return None
    if kind == "column" and slots.get("column") == "names":
        return None  # `the column names` are the heading
    args = {**slots, **args}
    settings = dict(phrase.remarks)
    settings |= {"cased": args.pop("cased")} if "cased" in args else {}
    turned = args.pop("turned", False)
    if kind == "keep_numbers" and turned:
        args = {_BEYOND.get(key, key): value for key, value in args.items()}
        if len(_BEYOND.keys() & args.keys()) != 1:
            return None
    if kind in _CONDITIONAL and not _settle_conditions(args, turned=turned):
        return None
    if "column2" in args:
        args["column"] = f"{args.pop('column2')}.{args['column']}"
    if settings.pop("ordered", False):
        settings["order"] = "sorted"
    if settings.get("ignore_case"):
        args["ignore_case"] = True
    if "cased" in settings:  # `with WARN, in capitals`; `with tea, in capitals` says something else
        needles = [str(args[key]) for key in ("needle", "needle2") if key in args]
        if not needles or not all(map(_CASED[settings.pop("cased")], needles)):
            return None
        settings["ignore_case"] = False
    if kind == "distinct":
        settings.pop("once", None)
    if kind in ("distinct", "extract") and settings.get("order") == "sorted":
        args["order"] = "sorted"
    if kind == "grouped" and "order" in settings:
        args["order"] = settings["order"]
    for key in ("once", "flat", "gaps"):
        if settings.get(key):
            args[key] = True
    if kind == "unique_sorted" or (kind == "unique" and settings.get("order") == "sorted"):
        kind, args = "sort", {**args, "unique": True}
    names = {"files": (), "ext": ()}.get(kind, ())
    args = {key: value for key, value in args.items() if key not in ("files", *names)}
    given = () if kind in ("list_files", "count_files") else inputs[0]
    if kind == "join" and all(name.lower().endswith(TABLES) for name in given):
        kind = "stack" if "heading" in settings or _is_table(output) else kind
    elif kind == "join" and "heading" in settings:
        return None
    sought = (str(args[key]) for key in ("needle", "needle2") if key in args)
    called = any(_is_called_word(tokens.original, text) for text in sought)
    ways = _open(phrase, kind, args, settings, inputs[0], output, called=called, tabled=tabled)
    more = [{"inputs": each} for each in inputs[1:]]
    args = dict(sorted(args.items()))
    return Op(kind, args, given, output, tuple({**w, **m} for w in ways for m in ({}, *more)))


def _leaves_answer(tokens: Tokens) -> bool:
    """Whether the sentence names nothing that is written and changes nothing, so that the answer
    goes to its file."""
    return not is_change(tokens.bare) and all(
        mention.kind is not Kind.NEW_FILE and not mention.is_target for mention in tokens.mentions
    )


def _settle_conditions(args: Args, *, turned: bool) -> bool:
    """Fill in what each condition leaves to the one before; False where that cannot be told."""
    further: list[Args] = []
    before, held = args, args.pop("held", False)
    for each in args.get("more", ()):
        named = {key for key in ("column", "degree", "verb") if key in each}
        if not named and each.get("held", held) == held:  # `over 3 and under 5`, `in A or in B`
            each = {**{k: before[k] for k in ("column", "degree", "verb") if k in before}, **each}
            if "op" not in each and "op" in before and "upto" not in before:
                each["op"] = before["op"]
        held = each.pop("held", held)
        further.append(each)
        before = each
    for each in (args, *further):
        if "value" in each:
            each.setdefault("op", "==")
        if "upto" in each and turned:
            return False
    if any("op" not in each for each in (args, *further)):
        return False
    if turned:
        for each in (args, *further):
            each["op"] = _OPPOSITE[each["op"]]
    if further:
        said = args.get("joined", "and")
        ops = {each["op"] for each in (args, *further)}
        one = len({repr((e.get("column"), e.get("degree"))) for e in (args, *further)}) == 1
        if turned:
            said = {"and": "or", "or": "and"}[said]
        elif one and said == "or" and ops <= _NEGATIVE:
            said = "and"  # `not Oslo or Rome` is neither
        elif one and said == "and" and ops == {"=="}:
            said = "or"  # `the rows of Oslo and Rome`
        args["more"], args["joined"] = tuple(further), said
    return True


#: Words of taking away: of `the lines without tea` only one thing can be meant afterwards.
_TAKING = frozenset(
    "remove delete drop strip discard exclude filter rid leave omit throw cut take erase skip "
    "ignore disregard eliminate weed clear purge ditch kick dispose cast gone go removed deleted "
    "dropped".split()
)
_CASED: dict[str, Callable[[str], bool]] = {"upper": str.isupper, "lower": str.islower}
_ROWS = re.compile(r"(?i)\b(?:rows?|records?|entr(?:y|ies))\b(?!.*\blines?\b)|记录|条数据")
_BEYOND = {"gt_n": "le_n", "le_n": "gt_n", "ge_n": "lt_n", "lt_n": "ge_n"}
#: Kinds of which two that `and` joins would not be meant one after the other.
_ONE_BY_ONE = frozenset(
    ("keep_lines", "rows", "json_rows", "keep_numbers", "column", "first", "last", "reverse")
)
_NEGATIVE = frozenset(("!=", "not_contains", "not_starts", "not_ends"))


def _clear(phrase: Phrase, before: Sequence[Op], *, left: bool) -> bool:
    """False where `them` may be what was taken away or what is left, or `top` may be highest.

    Args:
        left: Only what is left can be meant: the sentence has just said where it goes, or nothing
            is said to be taken away.
    """
    said = dict(phrase.remarks)
    if phrase.rule.of == "kept":
        return True
    if phrase.rule.of == "alone" and before:
        return False  # `lines with TEA, in capitals` may say how TEA is written
    if "them" in said and phrase.rule.of == "removal":
        return False
    if "it" in said and phrase.rule.kind in ("skip", "skip_last"):
        return False
    if not before:
        return True
    if "them" in said and phrase.rule.of == "previous":
        return False  # `count them in n.txt` puts no count of something else there
    if phrase.source == ("them",) and before[-1].kind in REMOVALS and not left:
        return False
    in_order = before[-1].kind in ("sort", "csv_sort") and not before[-1].args.get("reverse")
    return not (phrase.rule.of == "top" and in_order)


def _fits(lexicon: Lexicon, kind: str, remark: tuple[str, Any]) -> bool:
    """Whether a remark can be said of such an operation."""
    key, value = remark
    if key in ("them", "it"):
        return key == "it" or kind not in REMOVALS
    about = lexicon.kinds.get(kind, {"takes": ("lines",)})
    if (key, value) == ("form", "number") or key == "number":
        return about.get("gives") == "number"
    if (key, value) in (("heading", "once"), ("heading", "each")):
        return f"{key}_{value}" in about["takes"]
    if key in ("ignore_case", "whole_word", "cased") and "case" in about["takes"]:
        return True
    return key in about["takes"] or f"{key}_{value}" in about["takes"]


def _endings(reads: str) -> tuple[str, ...]:
    return TABLES if reads == "csv" else (f".{reads}",)


def _inputs(
    tokens: Tokens, lexicon: Lexicon, phrase: Phrase, before: Sequence[Op]
) -> tuple[tuple[str, ...], ...]:
    """What the operation reads; several when the sentence leaves it open."""
    files = dict(phrase.slots).get("files")
    if files and phrase.source and tokens.is_token(phrase.source[0]):
        return ()  # `a.txt, b.txt and c.txt` are not two files beside a third
    if files:
        return (tuple(tokens.value(w) for w in files if w[0] in "FN" and w[-1] == "_"),)
    if "right" in (slots := dict(phrase.slots)):
        left, right = (tokens.value(slots[key][0]) for key in ("left", "right"))
        if "same" in slots and tokens.value(slots["same"][0]) == right:
            left, right = right, left
        return ((left, right),) if left != right else ()
    if phrase.rule.kind in ("list_files", "count_files"):
        below = phrase.rule.args.get("below") and phrase.source == ("it",)  # `its subfolders`
        return (("*",),) if not phrase.source or below else ()
    if phrase.source and tokens.is_token(phrase.source[0]):
        return ((tokens.value(phrase.source[0]),),)
    if not before or (phrase.rule.of == "named" and not phrase.source):
        return ()
    last = before[-1]
    return tuple(
        inputs for inputs in _meant(lexicon, phrase, last) if _suits(phrase, inputs, before)
    )


def _meant(lexicon: Lexicon, phrase: Phrase, last: Op) -> tuple[tuple[str, ...], ...]:
    """What `it` or nothing at all may stand for after the operation `last`."""
    number = lexicon.kinds.get(last.kind, {}).get("gives") == "number"
    made, hidden = (last.output,), last.output.startswith(".work/")
    if phrase.rule.of == "previous":
        return () if number else (made,)
    if number:
        return (last.inputs,) if last.inputs and not hidden else ()
    if last.kind in ("json_to_csv", "csv_to_json") and not hidden:
        return (made, last.inputs)
    if hidden or phrase.source or len(last.inputs) != 1:
        return (made,)
    family = phrase.rule.family
    if family and family == lexicon.kinds.get(last.kind, {}).get("family") and not phrase.sequel:
        return (last.inputs,)
    return (made, last.inputs)


def _suits(phrase: Phrase, inputs: tuple[str, ...], before: Sequence[Op]) -> bool:
    """Whether an operation on tables or JSON would read such a file."""
    if not phrase.rule.reads:
        return True
    if any(op.output == inputs[0] and op.kind in _TABLE_KINDS for op in before):
        return phrase.rule.reads == "csv"
    return inputs[0].lower().endswith(_endings(phrase.rule.reads))


def _conversion(source: str, output: str) -> str:
    ends = (source.rpartition(".")[2].lower(), output.rpartition(".")[2].lower())
    return {("json", "csv"): "json_to_csv", ("csv", "json"): "csv_to_json"}.get(ends, "")


def _slots(tokens: Tokens, phrase: Phrase) -> Args | None:
    """What the slots hold, as the person wrote it; None where that is not certain."""
    args: Args = {}
    further: list[Args] = []
    for name, words in phrase.slots:
        into = further[-1] if further else args
        if name in _SILENT or name in _RECOUNTED:
            continue
        if name == "held":
            into["held"] = True
            continue
        if name in _SPELLED:
            args["cased"] = _SPELLED[name]
            continue
        if name in FURTHER:
            if args.setdefault("joined", FURTHER[name]) != FURTHER[name]:
                return None
            further.append({})
            continue
        if name in COMPARISONS:
            into.setdefault("op", COMPARISONS[name])
            continue
        if name in JOINS:
            args["join"] = JOINS[name]
            continue
        value = _value(tokens, phrase, name, words)
        if value in (None, ""):
            return None
        if name == "value2":
            into["value"] = tokens.joined(into["value"], str(value))
        else:
            key = "column" if name == "nth" or (name == "count" and _of_column(phrase)) else name
            key = _ALIAS.get(key, key)
            (into if key in CONDITION and name != "within" else args)[key] = value
    if further:
        args["more"] = tuple(further)
    if args.pop("ext2", args.get("ext")) != args.get("ext"):
        return None
    return _with_degree(args, phrase)


#: Slots that say nothing of their own, and those that `_with_degree` counts.
_SILENT = frozenset(
    ("files", "thing", "item", "left", "right", "same", "onlyword", "everyword", "old")
)
_SPELLED = {"capsword": "upper", "smallword": "lower"}
_RECOUNTED = frozenset(("high", "low", "sinceyear"))
_ALIAS = {
    "quoted": "needle",
    "exact": "needle",
    "bare": "needle",
    "bare2": "needle2",
    "zlevel": "needle",
    "newtext": "replacement",
    "said": "value",
    "rank": "start",
    "within": "column",
    "level": "needle",
    "levels": "needle",
    "level2": "needle2",
    "levels2": "needle2",
    "day": "needle",
    "signs": "needle",
    "mark": "needle",
} | {
    "signs2": "replacement",
    "later": "after",
    "earlier": "before",
}


def _value(tokens: Tokens, phrase: Phrase, name: str, words: tuple[str, ...]) -> Any:
    """What one slot holds; None or "" where that is not certain."""
    if name == "columns":
        return tokens.names(words) or None
    if name in ("count", "nth", *NUMBERS):
        if not tokens.is_token(words[0]):
            return words[0] if name in BOUNDS and is_number(words[0]) else None
        number = tokens.value(words[0])
        whole = name not in BOUNDS
        if whole and not (isinstance(number, int) and (number > 0 or name == "nth")):
            return None
        return number
    if name in ("ext", "ext2"):
        return tokens.value(words[0])
    if name == "place":
        return PLACES[words[0]]
    if name == "degree":
        return ("" if tokens.chinese else " ").join(words)
    if name in ("level", "levels", "level2", "levels2"):
        return LEVELS[words[0]]
    if name == "verb":
        return words[0]
    if name == "step" and words[0] == "other":
        return 2
    if name in ("rank", "step"):
        return RANKS.get(words[0]) or int(re.sub(r"\D", "", words[0]))
    if name in ("signs", "mark"):
        return sign_of(words)
    if name in ("sep", "signs2") and not tokens.is_token(words[0]):
        return sign_of(words)
    written = tokens.written(words)
    if name == "day" and "-" not in written:
        return None
    if name in ("text", "sep", "replacement") and tokens.is_token(words[0]):
        return written or None
    return written


def _with_degree(args: Args, phrase: Phrase) -> Args | None:
    """`older than 30` is more of a column, `the lowest age` the least of one."""
    said = dict(phrase.slots)
    if "sinceyear" in said:
        args["degree"] = said["sinceyear"][0]
        args["op"] = {"since": ">="}.get(args["degree"], ">" if args["degree"] == "after" else "<")
        number = str(args.get("value", ""))
        return args if re.fullmatch(r"[12]\d{3}", number) else None
    ranks = phrase.rule.kind in ("csv_sort", "best", "top_numbers")
    if "degree" in args:
        more = DEGREES[args["degree"]][1]
        if ranks and more:
            args["reverse"] = True
        elif not ranks:
            args.setdefault("op", ">" if more else "<")
    elif "best" in (phrase.rule.of, phrase.rule.kind) and "low" not in said:
        args["reverse"] = True
    return args


def _of_column(phrase: Phrase) -> bool:
    return phrase.rule.reads == "csv"


def _open(
    phrase: Phrase,
    kind: str,
    args: Args,
    settings: Args,
    inputs: tuple[str, ...],
    output: str,
    *,
    called: bool,
    tabled: bool,
) -> tuple[Args, ...]:
    """Every way in which the wording can be meant.

    Args:
        called: What is looked for is called a word.
        tabled: What is read is a table that an operation before made.
    """
    slots = dict(phrase.slots)
    ways: list[tuple[Args, ...]] = []

    def leave(key: str, *values: Any) -> None:
        known = settings[key] if key in settings else args.get(key)
        ways.append(tuple({key: v} for v in ((known,) if known is not None else values)))

    bare = any(name in _TEXTS and not _is_exact(words[0]) for name, words in phrase.slots)
    if "level" in slots or "levels" in slots:
        leave("ignore_case", False, True)
    if "needle" in args and bare:
        leave("ignore_case", False, True)
    if "needle" in args and (bare or called):
        leave("whole_word", called, not called)
    elif "needle" in args and "whole_word" in settings:
        leave("whole_word", False)
    if kind in _CONDITIONAL and bare:
        leave("ignore_case", False, True)
    if {"after", "before"} & set(args) or (
        kind in ("keep_numbers", "count_numbers") and {"ge_n", "le_n"} <= set(args)
    ):
        leave("inclusive", *((True, False) if "ge_n" in args else (False, True)))
    if kind == "join_lines" and not _is_exact(slots["sep"][0]) and args["sep"].strip():
        ways.append(({"sep": args["sep"]}, {"sep": f"{args['sep']} "}))  # "separated by commas"
    if kind == "unique":  # what repeats is taken away, the rest stays where it is
        leave("order", "first", *(() if phrase.rule.of == "removal" else ("sorted",)))
    if kind == "count_unique_words":
        leave("ignore_case", False, True)
    if kind == "list_files" and "below" not in args:
        ways.append(({"flat": True}, *(() if "flat" in args else ({"below": True},))))
    if kind == "tally":
        leave("order", "first", "sorted", "count")
    if kind == "number_lines":
        leave("separator", " ", "\t", ". ", ": ")
    if kind == "count_chars":
        leave("line_ends", True, False)
    if "thing" in slots:
        ways.append(({"things": True},))
    ways += _headings(kind, settings, inputs, output, tabled=tabled)
    return tuple({k: v for way in each for k, v in way.items()} for each in product(*ways))


#: Slots that hold a text of the sentence.
_TEXTS = frozenset(("needle", "needle2", "value", "said"))


def _is_called_word(text: str, needle: str) -> bool:
    """Whether the sentence says `the word NEEDLE`: then a part of a longer one may not be meant."""
    called = rf"(?i)(?:\b(?:words?|terms?|phrases?)|单词|词语?)\s*['\"“‘「`]?{re.escape(needle)}"
    return re.search(called, text) is not None


def _is_exact(word: str) -> bool:
    """Whether what is looked for is quoted, a sign, a time or a number: no word of the sentence."""
    chinese = "\u4e00" <= word[0] <= "\u9fff"  # has neither capitals nor gaps between words
    return token_of(word) in ("L", "X", "T", "Q") or chinese or not word[0].isalpha()


def _headings(
    kind: str, settings: Args, inputs: tuple[str, ...], output: str, *, tabled: bool
) -> Iterator[tuple[Args, ...]]:
    """What becomes of a table's first row."""
    if settings.get("counted"):
        yield ({},)  # the heading is a line like the others
    elif "heading" in settings:
        yield ({"heading": settings["heading"]},)
    elif kind == "stack":
        yield ({"heading": "once", "unsaid": True}, {"heading": "each"})
    elif kind in ("rows", "columns", "csv_sort", "csv_sort2") and _stays_table(
        kind, inputs, output, tabled=tabled
    ):
        yield ({"heading": "kept"},)  # a table made of a table
    elif kind in ("column", "columns", "rows", "csv_sort", "csv_sort2"):
        yield ({"heading": "dropped"}, {"heading": "kept"})
    elif kind in _LINE_KINDS and inputs[0].lower().endswith(TABLES):
        yield ({}, {"heading": "kept"}, {"heading": "dropped"})


def _is_table(output: str) -> bool:
    return output.startswith(".work/") or output.lower().endswith(TABLES)


def _stays_table(kind: str, inputs: tuple[str, ...], output: str, *, tabled: bool) -> bool:
    """Whether a table is made of a table, which keeps its heading; `.work/` goes on as it is."""
    if output.startswith(".work/"):
        return kind != "csv_sort"
    passed_on = inputs[0][0] == "." and not tabled
    return output.lower().endswith(TABLES) and (kind != "csv_sort" or not passed_on)
