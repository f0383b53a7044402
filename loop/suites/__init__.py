"""Everyday chores in plain words: tasks made of a seed, with results that the loop never sees.

They are worded as people say them who know nothing of our tools, some in Chinese, some with two
goals; three kinds can be done by nobody, in three the input gives orders. What must come out is
worked out here, apart from everything that the loop runs. Nothing that reads tasks may quote them.
"""

from __future__ import annotations

from loop.suites import records, rest, texts
from loop.suites.making import KINDS, Kind, Task

__all__ = ["KINDS", "Kind", "Task", "records", "rest", "texts"]
