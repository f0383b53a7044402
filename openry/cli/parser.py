"""Options of the forms for people."""

from __future__ import annotations

from openry.forwarder.options import Parser as Parser
