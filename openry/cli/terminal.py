"""Asking whoever sits at the terminal."""

from __future__ import annotations

import os


def can_ask() -> bool:
    """Whether a person sits there who could answer: not behind a pipe, not in a background job."""
    try:
        fd = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(fd) == os.getpgrp() and os.isatty(0)
    except OSError:
        return False
    finally:
        os.close(fd)


def ask(question: str) -> bool:
    """Ask at the terminal itself: standard output is for the answer of the command."""
    try:
        with open("/dev/tty", "r+b", buffering=0) as terminal:
            terminal.write(f"openry: {question} [y/N] ".encode())
            return terminal.readline().strip().lower() in (b"y", b"yes")
    except OSError:
        return False
