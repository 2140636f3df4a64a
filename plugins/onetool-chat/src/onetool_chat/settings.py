"""The section ``chat`` of ``onetool.yaml``."""

from __future__ import annotations

from pydantic import Field

from onetool_chat.model_providers import ProviderName
from ot.config.setting_types import Seconds, Settings, WebAddress


class Chat(Settings):
    """Which model onetool chat talks to."""

    provider: ProviderName = Field(default="anthropic", description="Whose model answers")
    model: str = Field(default="", description="The model's name; empty means the provider's default")
    anthropic_url: WebAddress = Field(
        default="", description="The address of Anthropic's API; empty means the official one"
    )
    ollama_url: WebAddress = Field(
        default="", description="The address of Ollama; empty means OLLAMA_HOST, or http://127.0.0.1:11434"
    )
    openai_url: WebAddress = Field(
        default="",
        description="The address of an OpenAI-compatible API, such as http://127.0.0.1:8000/v1; empty means that of "
        "the provider",
    )
    max_tokens: int = Field(default=8192, ge=1, le=1_000_000, description="The longest reply, in tokens")
    context_tokens: int = Field(
        default=0,
        ge=0,
        le=10_000_000,
        description="How many tokens a conversation may take before old parts of it are forgotten, and Ollama's "
        "num_ctx; 0 means 32,768 for Ollama, 200,000 for Anthropic, and no bound for others",
    )
    turns: int = Field(default=25, ge=1, le=1000, description="How many turns of tool calls a question may take")
    seconds: Seconds = Field(default=600.0, description="Wall time of a question, including its tools")
    gap_seconds: Seconds = Field(default=60.0, description="How long a reply may pause")
    system: str = Field(default="", description="The system prompt")
    tool_questions: int = Field(
        default=50, ge=0, le=100_000, description="How often the tools of one run may ask the model, all together"
    )
    tool_tokens: int = Field(
        default=500_000,
        ge=0,
        le=1_000_000_000,
        description="Tokens after which the tools of one run may ask the model no more, questions and answers together",
    )
