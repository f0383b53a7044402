"""OpenRY: workflows that small models run reliably, through a hand that plain code controls."""

__version__ = "0.1.0"
