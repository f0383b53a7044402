"""What a provider's error means here: one plain sentence, and a code that callers match on."""

from __future__ import annotations

import re
from collections.abc import Iterator

from openry.errors import ModelError
from openry.llm.retry import retry_after_s

#: What anybody can do who has no key, no network, or a wrong name.
WAYS_OUT = (
    "use `--planner local/smollm2`, or set OPENRY_PLANNER_MODEL "
    "(for steps: `--model`, OPENRY_MODEL)"
)
_SHOWN_CHARS = 300
#: By the names of litellm's classes; the first that fits, from the most special to the least.
_CODES = {
    "ContextWindowExceededError": "context_length",
    "AuthenticationError": "no_key",
    "PermissionDeniedError": "no_key",
    "PaymentRequiredError": "no_credit",
    "NotFoundError": "unknown_model",
    "LiteLLMUnknownProvider": "unknown_model",
    "RateLimitError": "rate_limited",
    "MidStreamFallbackError": "cut",
    "Timeout": "overloaded",
    "ServiceUnavailableError": "overloaded",
    "BadGatewayError": "overloaded",
    "InternalServerError": "overloaded",
    "APIConnectionError": "no_network",
}
#: For errors whose class says nothing.
_STATUS_CODES = {401: "no_key", 403: "no_key", 404: "unknown_model", 429: "rate_limited"}
_UNREACHABLE = re.compile(
    r"connection error|connection refused|cannot connect|connect call failed|name or service"
    r"|unsupported protocol|no route to host|network is unreachable|getaddrinfo",
    re.IGNORECASE,
)
_NO_KEY = re.compile(
    r"missing .*(?:key|credentials)|no api key|api_key .*must be set", re.IGNORECASE
)
_NO_CREDIT = re.compile(r"insufficient_quota|exceeded your current quota|billing", re.IGNORECASE)
_NO_PROVIDER = re.compile(r"LLM Provider NOT provided", re.IGNORECASE)
_BROKEN_OFF = re.compile(
    r"ended before a finish_reason|incomplete chunked read|peer closed connection"
    r"|empty or invalid response from llm endpoint",
    re.IGNORECASE,
)
_CONTEXT = re.compile(r"context.{0,10}(?:length|window|size)|too many tokens", re.IGNORECASE)
_LITELLM_PREFIX = re.compile(r"^(?:(?:litellm\.)?\w+(?:Error|Exception|Timeout)\s*[:-]\s*)+")


def as_model_error(error: Exception, model: str, base_url: str, *, begun: bool) -> ModelError:
    """The ModelError that `error`, raised by litellm, stands for.

    Args:
        begun: Part of the answer had come: whatever it is, the answer is cut.
    """
    said = " ".join(str(error).split())
    code = "cut" if begun else _code(error, said)
    wait_s = _asked_wait_s(error) if code in ("rate_limited", "overloaded") else None
    return ModelError(code, _sentence(code, model, base_url, said), retry_after_s=wait_s)


def _code(error: Exception, said: str) -> str:
    if _NO_PROVIDER.search(said):
        return "unknown_model"
    if _NO_KEY.search(said):
        return "no_key"
    if _BROKEN_OFF.search(said):
        return "cut"
    if _NO_CREDIT.search(said):
        return "no_credit"
    by_status = _STATUS_CODES.get(getattr(error, "status_code", 0), "provider")
    by_class = next((_CODES[name] for name in _class_names(error) if name in _CODES), by_status)
    if by_class in ("overloaded", "no_network") and _UNREACHABLE.search(said):
        return "no_network"
    if by_class == "provider" and _CONTEXT.search(said):
        return "context_length"
    return by_class


def _class_names(error: Exception) -> Iterator[str]:
    return (kind.__name__ for kind in type(error).__mro__)


def _sentence(code: str, model: str, base_url: str, said: str) -> str:
    at = f" at {base_url}" if base_url else ""
    detail = _LITELLM_PREFIX.sub("", said)[:_SHOWN_CHARS].rstrip(". ")
    return {
        "unknown_model": f"`{model}` is not known{at}: {WAYS_OUT}",
        "no_key": f"`{model}`{at} {_key_trouble(model)}, or {WAYS_OUT}",
        "no_credit": f"the account for `{model}` has no credit left: top it up, or {WAYS_OUT}",
        "no_network": f"`{model}` cannot be reached{at}: check the network, or {WAYS_OUT}",
        "rate_limited": f"`{model}`{at} allows no more calls for now: try later, or {WAYS_OUT}",
        "overloaded": f"`{model}`{at} does not answer now ({detail}): try later, or {WAYS_OUT}",
        "context_length": f"the question is too long for `{model}`: {detail}",
        "cut": f"the answer of `{model}`{at} broke off",
    }.get(code, f"`{model}`{at} refused the question: {detail}")


def _key_trouble(model: str) -> str:
    """`needs OPENAI_API_KEY: set it`, or what to do about a key that is there."""
    import litellm

    try:
        missing = litellm.validate_environment(model).get("missing_keys") or []
    except Exception:  # a hint only: no hint then
        missing = []
    names = " or ".join(missing)
    return f"needs {names}: set it" if names else "does not accept its key: correct it"


def _asked_wait_s(error: Exception) -> float | None:
    response = getattr(error, "response", None)
    headers = getattr(error, "litellm_response_headers", None) or getattr(response, "headers", None)
    return retry_after_s(dict(headers)) if headers else None
