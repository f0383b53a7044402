"""Models behind one small Protocol. Importing this brings no model library."""

from openry.llm.base import (
    ChatReply,
    ChatRequest,
    Message,
    Model,
    Purpose,
    ToolCall,
    assistant,
    estimate_tokens,
    system,
    user,
)
from openry.llm.budget import Budget, Spent
from openry.llm.cassette import Cassette
from openry.llm.opening import check_model, open_model
from openry.llm.scripted import ScriptedModel

__all__ = [
    "Budget",
    "Cassette",
    "ChatReply",
    "ChatRequest",
    "Message",
    "Model",
    "Purpose",
    "ScriptedModel",
    "Spent",
    "ToolCall",
    "assistant",
    "check_model",
    "estimate_tokens",
    "open_model",
    "system",
    "user",
]
