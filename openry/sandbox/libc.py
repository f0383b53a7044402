"""Calls of the C library that Python does not offer."""

from __future__ import annotations


def call(name: str, *arguments: int | bytes) -> int:
    """What the function answers; -1 where it failed.

    By the part of `ctypes` that is written in C; all of it costs the forwarder 4 ms.
    """
    try:
        from _ctypes import call_cdeclfunction, dlopen, dlsym

        place = dlsym(dlopen(None, 0), name)  # type: ignore[arg-type]  # None: this program
        answer: int = call_cdeclfunction(place, arguments)
    except ImportError:
        import ctypes

        answer = getattr(ctypes.CDLL(None), name)(*arguments)
    return answer
