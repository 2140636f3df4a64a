"""Opens a conversation as the settings say."""

from __future__ import annotations

from collections.abc import Sequence

from onetool_chat.anthropic_client import AnthropicClient
from onetool_chat.chat_client import ChatClient
from onetool_chat.chat_tools import PAGE_TOOL, ChatApp, ChatTools
from onetool_chat.model_providers import MODEL_PROVIDERS, ProviderName
from onetool_chat.ollama_client import OllamaClient
from onetool_chat.openai_client import OpenAIClient
from onetool_chat.settings import Chat
from ot.config.secrets import Secrets
from ot.errors import ChatError
from ot.execution.caller import AskUser
from ot.registry.tool_definitions import ToolDefinitions
from ot.registry.tool_registry import ToolRegistry


def choose_chat(chat: Chat, provider: ProviderName | None, model: str) -> Chat:
    """Return the settings *chat* with another provider or model, if they are named."""
    if provider is None or provider == chat.provider:
        return chat.model_copy(update={"model": model or chat.model})
    # The model of another provider would not be known there, and the key of one is not for the address of another.
    named = MODEL_PROVIDERS[chat.provider].api == "openai"
    return chat.model_copy(
        update={"provider": provider, "model": model, "openai_url": "" if named else chat.openai_url}
    )


def key_for(chat: Chat, secrets: Secrets) -> str:
    """Return the key of the provider that *chat* names, or nothing where it needs none; ChatError if it is missing."""
    provider = MODEL_PROVIDERS[chat.provider]
    key = secrets.get(provider.key) or ""
    if not key and provider.needs_key:
        raise ChatError(
            f"there is no key for {provider.label}'s models: put {provider.key} into the environment or into "
            "~/.onetool/secrets.yaml, or use a local model with chat.provider: ollama (--provider ollama)"
        )
    return key


def open_client(chat: Chat, secrets: Secrets) -> ChatClient:
    """Return the client of the provider that *chat* names; ChatError if its key, library or model is missing."""
    key, provider = key_for(chat, secrets), MODEL_PROVIDERS[chat.provider]
    if not (chat.model or provider.model):
        raise ChatError(f"{provider.label} has many models: name one with --model, or as chat.model")
    if provider.api == "ollama":
        return OllamaClient(chat, key, usual_url=secrets.environment.get("OLLAMA_HOST", ""))
    return AnthropicClient(chat, key) if provider.api == "anthropic" else OpenAIClient(chat, key)


def open_tools(
    app: ChatApp, registry: ToolRegistry, packs: Sequence[str], run: str, ask: AskUser | None = None
) -> ChatTools:
    """Return the tools of *packs* and the one that pages large results, or the one tool ``run`` without any."""
    # Without a pack that is broken a model would do what it can, and not say so.
    for pack in packs:
        if why := registry.pack(pack).broken:
            raise ChatError(f"the pack {pack} cannot be offered: {why}. Fix it, or leave it out of --packs")
    if not packs:
        return ChatTools(app, run=run, ask=ask)
    # Large results are stored: without it the model would get a handle and nothing to open it with.
    return ChatTools(app, ToolDefinitions.choose(registry, [*packs, PAGE_TOOL]), ask=ask)
