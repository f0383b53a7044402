#!/usr/bin/env python3
"""A digest of a large text: trouble, rare lines, common kinds, both ends. Copy me and change me.

usage: overflow_python.py FILE TOKENS [TASK]
"""

import re
import sys
from collections import deque

TROUBLE = re.compile(
    rb"error|exception|fatal|fail|panic|critical|traceback|segmentation|denied|refused|timed? ?out"
    rb"|cannot|could not|unable|not found|assert|killed|corrupt|invalid|unexpected",
    re.IGNORECASE,
)
HEX = re.compile(rb"\b(?=[a-fA-F]*[0-9])[0-9a-fA-F]{4,}\b")
DIGITS = b"0123456789"
MOST_KINDS = 20_000
BYTES_PER_TOKEN = 2.2  # low, so that the digest is never longer than asked
LONGEST = 240


def main(path, tokens, task=""):
    words = {w.lower().encode() for w in re.findall(r"\w{5,}", task)}
    plain = {}  # a line without its digits -> its kind; most lines are found here
    kinds = {}  # its kind -> [times, first line number, that line, whether it tells of trouble]
    head, tail, before, number = [], deque(maxlen=5), b"", 0
    with open(path, "rb") as file:
        for number, line in enumerate(file, 1):
            line = line[:4096].rstrip()
            if number <= 5:
                head.append(line)
            tail.append(line)
            key = line.translate(None, DIGITS)
            kind = plain.get(key)
            if kind is None:
                masked = HEX.sub(b"#", line).translate(None, DIGITS)
                kind = kinds.get(masked)
                if kind is None:
                    small = line.lower()
                    bad = bool(TROUBLE.search(small)) or any(word in small for word in words)
                    if bad and before.startswith((b" ", b"\t")):
                        line = before + b"\n    " + line  # the frame above what went wrong
                    kind = [0, number, line, bad]
                    if len(kinds) < MOST_KINDS or bad:
                        kinds[masked] = kind
                if len(plain) < MOST_KINDS:
                    plain[key] = kind
            kind[0] += 1
            before = line
    room = tokens * BYTES_PER_TOKEN
    print(title := f"{number:,} lines, {len(kinds):,} kinds of lines; number: line x times")
    room -= len(title)
    ranked = sorted(kinds.values(), key=lambda kind: (kind[0], not kind[3], kind[1]))
    common = sorted(kinds.values(), key=lambda kind: -kind[0])[:8]
    room -= show("first lines", [(0, line, 1) for line in head], room * 0.08)
    room -= show("last lines", [(0, line, 1) for line in tail], room * 0.08)
    room -= show("common", [(kind[1], kind[2], kind[0]) for kind in common], room * 0.1)
    for name, bad, share in (("trouble", True, 0.6), ("rare", False, 1.0)):
        rows = [(kind[1], kind[2], kind[0]) for kind in ranked if kind[3] is bad]
        room -= show(name, rows, room * share)


def show(name, rows, room):
    """Print as many rows as there is room for; how many bytes that took."""
    used, lines = len(name) + 1, []
    for number, line, times in rows:
        text = line[:LONGEST].decode("utf-8", "replace")
        text = (f"{number}: " if number else "") + text + (f" x{times:,}" if times > 1 else "")
        size = len(text.encode()) + 1
        if used + size > room:
            break
        used += size
        lines.append(text)
    if lines:
        print(name, *lines, sep="\n")
    return used if lines else 0


if __name__ == "__main__":
    if len(sys.argv) not in (3, 4) or not sys.argv[2].isdigit():
        sys.exit(__doc__)
    main(sys.argv[1], int(sys.argv[2]), *sys.argv[3:])
