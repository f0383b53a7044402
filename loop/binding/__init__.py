"""Fill capabilities' arguments from evidence: one module for each kind of evidence."""

from loop.binding.compound import Pair, compounds
from loop.binding.filling import fill
from loop.binding.made import as_made
from loop.binding.others import asks_for_rest
from loop.binding.scene import WORK, Filled, Scene, without_remarks

__all__ = [
    "WORK",
    "Filled",
    "Pair",
    "Scene",
    "as_made",
    "asks_for_rest",
    "compounds",
    "fill",
    "without_remarks",
]
