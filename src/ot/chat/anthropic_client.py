"""AnthropicClient: Anthropic's Messages API, streamed."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from email.utils import parsedate_to_datetime
from typing import Any

from ot.chat.anthropic_stream import SERVICE, AnthropicStream
from ot.chat.chat_client import Message, Say, ToolCall, Turn
from ot.chat.chat_tools import ToolAnswer
from ot.errors import BadReply, ChatError, ChatRefused, ChatUnavailable, MissingExtra, RateLimited
from ot.registry.tool_definitions import ToolDefinition

USUAL_MODEL = "claude-sonnet-5"
CONNECT_SECONDS = 5.0


class AnthropicClient:
    """Asks a model of Anthropic's; each request is made once."""

    def __init__(
        self,
        key: str,
        *,
        model: str = "",
        url: str = "",
        system: str = "",
        max_tokens: int = 8192,
        gap_seconds: float = 60.0,
    ) -> None:
        """Use *key* at *url*; a reply that pauses longer than *gap_seconds* has ended.

        Raises:
            MissingExtra: The library is not installed.
        """
        try:
            import anthropic  # noqa: PLC0415 - costs more than everything else together, and is an extra
        except ImportError:
            raise MissingExtra("chat with Anthropic's models", "chat") from None
        self.model = model or USUAL_MODEL
        self._errors = anthropic
        self._asked: dict[str, Any] = {"model": self.model, "max_tokens": max_tokens}
        self._asked |= {"system": system} if system else {}
        self._client = anthropic.AsyncAnthropic(
            api_key=key,
            base_url=url or None,
            max_retries=0,  # Retries is the one layer that tries again
            timeout=anthropic.Timeout(gap_seconds, connect=CONNECT_SECONDS),
        )

    async def turn(self, history: Sequence[Message], tools: Sequence[ToolDefinition], say: Say) -> Turn:
        """Return the model's whole reply."""
        stream = AnthropicStream(say)
        try:
            return await self._read(stream, history, tools)
        except ChatError:
            raise
        except self._errors.APIStatusError as error:
            raise _of_status(error) from None
        except self._errors.APIConnectionError as error:
            raise ChatUnavailable(SERVICE, f"no connection: {error.__cause__ or error}") from None
        except json.JSONDecodeError as error:
            raise BadReply(SERVICE, f"an event is no JSON: {error.doc[:100]!r}") from None
        except self._errors.AnthropicError as error:
            raise BadReply(SERVICE, str(error)[:300]) from None

    async def _read(self, stream: AnthropicStream, history: Sequence[Message], tools: Sequence[ToolDefinition]) -> Turn:
        import httpx2  # noqa: PLC0415 - comes with the library that was imported at the start

        asked: dict[str, Any] = {**self._asked, "messages": list(history), "stream": True}
        asked |= {"tools": [tool.for_anthropic() for tool in tools]} if tools else {}
        # What it returns depends on `stream`, which no type sees in a mapping.
        create: Any = self._client.messages.create
        events = await create(**asked)
        try:
            async for event in events:
                if not hasattr(event, "to_dict"):
                    raise BadReply(SERVICE, f"an event is no object but {type(event).__name__}")
                stream.take(event.to_dict(exclude_unset=True, warnings=False))
        except (httpx2.HTTPError, httpx2.StreamError, EOFError) as error:
            raise BadReply(SERVICE, f"it was cut: {error or type(error).__name__}") from None
        finally:
            await events.close()
        return stream.turn(history)

    def results(self, answers: Sequence[tuple[ToolCall, ToolAnswer]]) -> list[Message]:
        """Return one message with every answer under the id of its call."""
        content = [
            {"type": "tool_result", "tool_use_id": call.id, "content": answer.text, "is_error": answer.is_error}
            for call, answer in answers
        ]
        return [{"role": "user", "content": content}]

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.close()


def _of_status(error: Any) -> ChatError:
    """Return the error of ours that a status means; an error in the middle of a stream has status 200."""
    status, kind = int(error.status_code), _kind(error.body)
    if status == 429 or kind == "rate_limit_error":
        return RateLimited(SERVICE, retry_after(error.response.headers))
    if status >= 500 or kind in ("overloaded_error", "api_error"):
        # In the middle of a stream, part of the answer has been shown already.
        return ChatUnavailable(SERVICE, f"{status} {kind}".strip(), again=status != 200)
    hint = "is ANTHROPIC_API_KEY right?" if status in (401, 403) else "is the model's name right?" * (status == 404)
    return ChatRefused(SERVICE, status, str(error.message)[:500], hint)


def _kind(body: object) -> str:
    match body:
        case {"error": {"type": str(kind)}}:
            return kind
        case _:
            return ""


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that a service says to wait, if it does."""
    told = headers.get("retry-after", "").strip()
    try:
        return max(float(told), 0.0)
    except ValueError:
        pass
    try:
        return max(parsedate_to_datetime(told).timestamp() - time.time(), 0.0)
    except (TypeError, ValueError):
        return None
