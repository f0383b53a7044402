"""Processes, and what surrounds them. On the forwarder's path: nothing heavy here."""

from openry.sandbox.launcher import Launch, launcher

__all__ = ["Launch", "launcher"]
