"""Where the ledger is: a file of SQLite, or a database by URL."""

from __future__ import annotations

import os

#: A path, or a URL as SQLAlchemy has them.
Where = str | os.PathLike[str]

_SQLITE = ("sqlite:///", "sqlite+pysqlite:///")


def sqlite_path(where: Where) -> str | None:
    """The ledger's file, or None when `where` is the URL of another kind of database.

    >>> sqlite_path("sqlite:////srv/openry.db"), sqlite_path("openry.db")
    ('/srv/openry.db', 'openry.db')
    >>> sqlite_path("postgresql://db/openry") is None
    True
    """
    text = os.fspath(where)
    for prefix in _SQLITE:
        if text.startswith(prefix):
            text = text.removeprefix(prefix)
            break
    else:
        if "://" in text:
            return None
    return os.path.expanduser(text)  # noqa: PTH111  # pathlib costs the forwarder 8 ms


def sqlalchemy_url(where: Where) -> str:
    """The same place as SQLAlchemy names it. A bare `postgresql:` URL gets the psycopg driver."""
    path = sqlite_path(where)
    if path is not None:
        return f"sqlite:///{path}"
    scheme, rest = os.fspath(where).split("://", 1)
    return f"{'postgresql+psycopg' if scheme in ('postgresql', 'postgres') else scheme}://{rest}"


def shown(where: Where) -> str:
    """The place for a message: without the password a URL may hold.

    >>> shown("postgresql://me:secret@db/openry")
    'postgresql://***@db/openry'
    """
    text = os.fspath(where)
    if "://" not in text or "@" not in text:
        return text
    scheme, rest = text.split("://", 1)
    return f"{scheme}://***@{rest.rsplit('@', 1)[1]}"
