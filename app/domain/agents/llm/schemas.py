from datetime import datetime
from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import Meta

from app.kit.validation import ONE_LINE, VISIBLE, WORD
from app.kit.views import TestResult

_KEY = {
    "id": "pvk_01k9x3m7e8c0v2q4r6t8w0y2a4",
    "provider": "openai",
    "name": "Our OpenAI account",
    "key_hint": "…x7Qf",
    "base_url": None,
    "is_default": True,
    "created_at": "2026-01-01T12:00:00Z",
}


class CreateProviderKey(msgspec.Struct, kw_only=True):
    example: ClassVar[dict[str, Any]] = {
        "provider": "openai",
        "name": "Our OpenAI account",
        "api_key": "sk-proj-0123456789abcdef",
    }

    provider: Annotated[
        str,
        Meta(
            pattern=WORD,
            description="openai, anthropic, gemini, …; brave or tavily for web search; "
            "any name of your own with a base_url",
        ),
    ]
    name: Annotated[str, Meta(min_length=1, max_length=100, pattern=ONE_LINE)]
    api_key: Annotated[str, Meta(min_length=1, max_length=4096, pattern=VISIBLE)]
    base_url: (
        Annotated[
            str,
            Meta(
                max_length=2000,
                description="The address of the provider's OpenAI-compatible API, including /v1",
            ),
        ]
        | None
    ) = None
    is_default: Annotated[
        bool,
        Meta(description="Whether models use this key, as they use the first key of a provider"),
    ] = False


class ProviderKeyView(msgspec.Struct):
    example: ClassVar[dict[str, Any]] = _KEY

    id: str
    provider: str
    name: str
    key_hint: str
    base_url: str | None
    is_default: bool
    created_at: datetime


class KeyTest(TestResult):
    example: ClassVar[dict[str, Any]] = {
        **TestResult.example,
        "message": "The provider accepted the key and lists 63 models",
    }


class ModelView(msgspec.Struct):
    example: ClassVar[dict[str, Any]] = {
        "id": "local/smollm2",
        "provider": "local",
        "context_window": 4096,
        "input_cost_per_million": 0.0,
        "output_cost_per_million": 0.0,
        "takes_images": False,
    }

    id: str
    provider: str
    context_window: int | None
    input_cost_per_million: float | None
    output_cost_per_million: float | None
    takes_images: Annotated[
        bool | None,
        Meta(description="Whether messages may have images; null where only the provider knows"),
    ]
