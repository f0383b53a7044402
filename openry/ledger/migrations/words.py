"""The words in which migrations say what a table is made of. Never changed: old ones use them."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op


def serial() -> sa.Column[int]:
    number = sa.BigInteger().with_variant(sa.Integer, "sqlite")
    return sa.Column("id", number, primary_key=True, autoincrement=True)


def key(name: str) -> sa.Column[str]:
    return sa.Column(name, sa.Text, primary_key=True)


def text(name: str, default: str = "") -> sa.Column[str]:
    return sa.Column(name, sa.Text, nullable=False, server_default=default)


def texts(*names: str) -> list[sa.Column[str]]:
    return [text(name) for name in names]


def given(name: str) -> sa.Column[str]:
    return sa.Column(name, sa.Text, nullable=False)


def maybe(name: str) -> sa.Column[str]:
    return sa.Column(name, sa.Text, nullable=True)


def count(name: str, default: int = 0) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger, nullable=False, server_default=sa.text(str(default)))


def maybes(*names: str) -> list[sa.Column[str]]:
    return [maybe(name) for name in names]


def counts(*names: str) -> list[sa.Column[int]]:
    return [count(name) for name in names]


def amount(name: str) -> sa.Column[float]:
    return sa.Column(name, sa.Float, nullable=False, server_default=sa.text("0"))


def flag(name: str, default: Any = sa.false()) -> sa.Column[bool]:  # noqa: B008 - a constant
    return sa.Column(name, sa.Boolean, nullable=False, server_default=default)


def json_value(name: str, default: str | None = "{}") -> sa.Column[Any]:
    kind = sa.JSON(none_as_null=True)
    return sa.Column(name, kind, nullable=default is None, server_default=default)


def parent(table: str, column: str, parent: str, key: str) -> sa.ForeignKeyConstraint:
    name = f"fk_{table}_{column}"
    return sa.ForeignKeyConstraint([column], [f"{parent}.{key}"], name, ondelete="CASCADE")


def check(table: str, name: str, condition: str) -> sa.CheckConstraint:
    return sa.CheckConstraint(condition, name=op.f(f"ck_{table}_{name}"))


def one_of(table: str, column: str, values: str) -> sa.CheckConstraint:
    quoted = ", ".join(f"'{value}'" for value in values.split(","))
    return check(table, column, f"{column} IN ({quoted})")


def index(table: str, *columns: str) -> None:
    op.create_index(f"ix_{table}_{'_'.join(columns)}", table, list(columns))


def partial(name: str, table: str, columns: list[str], where: Any, *, unique: bool = False) -> None:
    op.create_index(name, table, columns, unique=unique, sqlite_where=where, postgresql_where=where)
