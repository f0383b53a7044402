"""Choosing a tool by what a fragment of a task is like; it lives with the tools."""

from openry.capability.choosing import Chooser, masked, veiled

__all__ = ["Chooser", "masked", "veiled"]
