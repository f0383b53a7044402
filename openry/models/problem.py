"""A mistake in a file a person or a model wrote."""

from __future__ import annotations

from openry.models.value import value


@value
class Problem:
    """One mistake with its place. `line` is 1-based; 0 when the whole file is meant."""

    file: str
    line: int
    message: str
    hint: str = ""
    level: str = "error"  #: `error` or `warning`

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.line else self.file
        hint = f" ({self.hint})" if self.hint else ""
        mark = "warning: " if self.level == "warning" else ""
        return f"{place}: {mark}{self.message}{hint}"
