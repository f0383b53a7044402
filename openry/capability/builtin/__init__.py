"""What the shipped tools do, run as child processes.

Standard library only and few imports: their start is the time a call takes. Each tool is a function
that takes its arguments by name and returns bytes, an iterator of bytes, or nothing.
"""
