"""A run's token: random, shown with every call, and stored as what cannot be turned back into it.

On the forwarder's path, hence without `hashlib` and `hmac`, which would cost it 3 ms.
"""

from __future__ import annotations


def token_of(secret: bytes, run_id: str, epoch: int) -> str:
    """The token of one claim of a run, from its engine's secret of 32 random bytes.

    Whoever knows it knows nothing of the secret, nor of another run's token.

    >>> token_of(b"x" * 32, "r", 1) == token_of(b"x" * 32, "r", 2)
    False
    """
    return _digest(f"{run_id}/{epoch}".encode(), key=secret)


def hashed(token: str) -> str:
    """What is stored of a token. It is as random as a key, so it needs neither salt nor rounds."""
    return _digest(token.encode("utf-8", "surrogateescape"))


def fits(token: str, stored: str) -> bool:
    """Whether `stored` is of this token. Takes as long whatever of it is wrong.

    >>> fits("a", hashed("a")), fits("b", hashed("a")), fits("", hashed("")), fits("", "")
    (True, False, False, False)
    """
    from _operator import _compare_digest

    return _compare_digest(hashed(token), stored) and bool(token)


def _digest(data: bytes, key: bytes = b"") -> str:
    """BLAKE2b; from the part of `hashlib` that is written in C, where that has its name."""
    try:
        from _blake2 import blake2b
    except ImportError:
        from hashlib import blake2b
    found: str = blake2b(data, digest_size=32, key=key).hexdigest()
    return found
