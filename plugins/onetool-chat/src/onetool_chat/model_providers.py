"""The providers of models that chat knows: the one place that has their names, addresses and keys."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

ProviderName = Literal["anthropic", "ollama", "openai", "openrouter", "lmstudio", "vllm", "llamacpp"]


@dataclass(frozen=True, slots=True)
class ModelProvider:
    """Whose models they are: how its API is spoken to, where it is, which secret it asks for, and the usual model."""

    label: str
    api: Literal["anthropic", "ollama", "openai"]
    key: str
    url: str = ""
    model: str = ""
    needs_key: bool = False
    context_tokens: int = 0
    """How long a conversation may be, where that is known."""


MODEL_PROVIDERS: Mapping[ProviderName, ModelProvider] = {
    "anthropic": ModelProvider(
        "Anthropic", "anthropic", "ANTHROPIC_API_KEY", "", "claude-sonnet-5", needs_key=True, context_tokens=200_000
    ),
    # Ollama's own few thousand tokens cut off the definitions of tools before anything else.
    "ollama": ModelProvider(
        "Ollama", "ollama", "OLLAMA_API_KEY", "http://127.0.0.1:11434", "qwen3", context_tokens=32_768
    ),
    "openai": ModelProvider(
        "OpenAI", "openai", "OPENAI_API_KEY", "https://api.openai.com/v1", "gpt-5.4-mini", needs_key=True
    ),
    "openrouter": ModelProvider(
        "OpenRouter", "openai", "OPENROUTER_API_KEY", "https://openrouter.ai/api/v1", needs_key=True
    ),
    "lmstudio": ModelProvider("LM Studio", "openai", "LM_API_TOKEN", "http://127.0.0.1:1234/v1"),
    "vllm": ModelProvider("vLLM", "openai", "VLLM_API_KEY", "http://127.0.0.1:8000/v1"),
    # It serves the one model that it was started with, whatever it is called.
    "llamacpp": ModelProvider("llama.cpp", "openai", "LLAMA_API_KEY", "http://127.0.0.1:8080/v1", "default"),
}
