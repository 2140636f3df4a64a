"""Maps the errors of every provider's library to OneTool's own, before a reply and within it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

from onetool_chat.errors import BadReply, ChatRefused
from onetool_chat.model_providers import ModelProvider
from ot.errors import ChatError, ChatUnavailable, RateLimited
from ot_sdk.network import retry_seconds

if TYPE_CHECKING:
    from httpx2 import Response


@asynccontextmanager
async def stream_reply[T](
    provider: ModelProvider, url: str, request: Awaitable[AbstractAsyncContextManager[T]], hint: str
) -> AsyncGenerator[T]:
    """Yield the reply to *request*, and raise ChatError for all that goes wrong; *hint* is for a missing model."""
    begun = False
    try:
        async with await request as reply:
            begun = True
            yield reply
    except ChatError:
        raise
    except Exception as error:  # whatever a library makes of what a service sends
        raise _chat_error(provider, url, error, hint, begun=begun) from error


def _chat_error(provider: ModelProvider, url: str, error: Exception, hint: str, *, begun: bool) -> ChatError:
    import httpx2  # noqa: PLC0415 - costs more than the rest of this package

    cause, response = error.__cause__ or error, getattr(error, "response", None)
    if response is not None and begun:
        # Not tried again: part of the answer has been shown already.
        return ChatUnavailable(provider.label, _message(getattr(error, "body", "")), again=False)
    if response is not None:
        return _refusal(provider, response, hint)
    if not begun and (isinstance(error, httpx2.HTTPError) or isinstance(cause, httpx2.HTTPError)):
        why = f"no connection to {url}: is it running? ({cause})"
        # On this machine a service that is not running will not be there in a second either.
        return ChatUnavailable(provider.label, why, again=url.startswith("https:"))
    read = str(getattr(error, "doc", ""))[:100]
    return BadReply(provider.label, f"{type(cause).__name__}: {cause}"[:300] + (f" in {read!r}" if read else ""))


def _refusal(provider: ModelProvider, response: Response, hint: str) -> ChatError:
    status, message = response.status_code, response.text[:500]
    with suppress(ValueError):
        message = _message(response.json())
    if status == 429 and "insufficient_quota" not in response.text:
        return RateLimited(provider.label, retry_seconds(response.headers))
    if status >= 500:
        return ChatUnavailable(provider.label, f"{status} {message}")
    advice = {401: f"is {provider.key} right?", 403: f"is {provider.key} right?", 404: hint}
    return ChatRefused(provider.label, status, message, advice.get(status, ""))


def _message(body: Any) -> str:
    match body:
        case {"error": {"message": str(said)}} | {"error": str(said)} | {"message": str(said)}:
            return said[:500]
        case _:
            return str(body)[:500]
