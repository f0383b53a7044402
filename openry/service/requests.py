"""What callers send, over MCP and HTTP alike."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from openry.errors import BadArgumentsError
from openry.models import Command

_A_DAY_S = 24 * 3600.0
Seconds = Annotated[float, Field(gt=0, le=_A_DAY_S)]


class Line(BaseModel):
    """A command line."""

    model_config = ConfigDict(extra="forbid", strict=True)

    command: str = Field(min_length=1, description="The line for the shell.")
    cwd: str = Field("", description="Folder to run in, relative to the workspace.")
    timeout_seconds: Seconds | None = Field(
        None, description="Ended after so many seconds; without it, after the configured ones."
    )
    env: dict[str, str] = Field({}, description="Variables for the command.")
    raw: bool = Field(False, description="Leave ANSI codes and carriage returns in the answer.")

    def as_command(self) -> Command:
        return Command(
            text=self.command,
            cwd=self.cwd,
            timeout_s=self.timeout_seconds,
            env=self.env,
            raw=self.raw,
        )


def line_of(given: dict[str, Any]) -> Line:
    """A command line from plain data.

    Raises:
        BadArgumentsError: Every problem at once.
    """
    try:
        return Line.model_validate(given)
    except ValidationError as error:
        raise BadArgumentsError(
            tuple(f"`{'.'.join(map(str, each['loc']))}`: {each['msg']}" for each in error.errors())
        ) from error
