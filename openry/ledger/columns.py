"""The kinds of columns the ledger's tables are made of."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    ColumnElement,
    Float,
    Integer,
    MetaData,
    Text,
    false,
    literal_column,
    text,
    true,
)

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
    }
)


def serial() -> Column[int]:
    """A number that grows and is never given twice, also after `prune`."""
    return Column(
        "id", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=True
    )


def key(name: str) -> Column[str]:
    return Column(name, Text, primary_key=True)


def text_column(name: str, default: str = "") -> Column[str]:
    return Column(name, Text, nullable=False, server_default=default)


def time_column(name: str) -> Column[str]:
    """When something happened; NULL until it has."""
    return Column(name, Text, nullable=True)


def stamp(name: str = "at") -> Column[str]:
    """When the row was made: always known, never defaulted, because the writer's clock says it."""
    return Column(name, Text, nullable=False)


def count(name: str, default: int = 0) -> Column[int]:
    return Column(name, BigInteger, nullable=False, server_default=text(str(default)))


def amount(name: str) -> Column[float]:
    return Column(name, Float, nullable=False, server_default=text("0"))


def flag(name: str, *, default: bool = False) -> Column[bool]:
    return Column(name, Boolean, nullable=False, server_default=true() if default else false())


def json_column(name: str, default: str | None = "{}") -> Column[object]:
    """A JSON value; without default it is NULL until known."""
    return Column(name, JSON(none_as_null=True), nullable=default is None, server_default=default)


def one_of(column: str, values: Iterable[str]) -> CheckConstraint:
    quoted = ", ".join(f"'{value}'" for value in values)
    return CheckConstraint(f"{column} IN ({quoted})", name=column)


def is_one_of(column: Column[str], *values: str) -> ColumnElement[bool]:
    """The same test as a WHERE with the values spelt out, as a partial index needs it."""
    first, *others = (literal_column(f"'{value}'", Text) for value in values)
    return column.in_([first, *others]) if others else column == first
