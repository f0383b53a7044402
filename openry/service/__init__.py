"""The hand without a process start a call: for agents over MCP, for programs over HTTP."""
