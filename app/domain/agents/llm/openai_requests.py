"""Request bodies of chat completions in OpenAI's wire format."""

from typing import Any, Final

import msgspec

from .protocol import Function, Image, Message, ModelRequest, NamedFunction, Target, ToolChoice
from .providers import LOCAL, provider_of

# The beginning of the lines around quoted material in a prompt. The local model is so small that it
# continues with the next quotation after its answer.
QUOTATION_MARK: Final = "=== "
# OpenAI's own reasoning models accept no temperature.
_REASONING_PREFIXES = ("o1", "o3", "o4", "gpt-5")


def completion_body(target: Target, request: ModelRequest) -> dict[str, Any]:
    name = target.name_at_provider
    body = {"model": name, **common_fields(request)}
    is_openai = target.provider == "openai"
    body["max_completion_tokens" if is_openai else "max_tokens"] = request.max_tokens
    if is_openai:
        # OpenAI takes it only for answers that it stores.
        body.pop("metadata", None)
    if takes_temperature(target):
        body["temperature"] = request.temperature
    if provider_of(target.model) == LOCAL:
        body["stop"] = [f"\n{QUOTATION_MARK}", *(request.options.stop or [])]
    return body


def takes_temperature(target: Target) -> bool:
    name = target.name_at_provider
    return target.provider != "openai" or not name.startswith(_REASONING_PREFIXES)


def common_fields(request: ModelRequest) -> dict[str, Any]:
    """Returns the fields that are the same for every provider, also for those of litellm."""
    body: dict[str, Any] = {"messages": [_message_body(message) for message in request.messages]}
    if request.functions:
        body["tools"] = [
            {"type": "function", "function": _function_body(function)}
            for function in request.functions
        ]
        if request.tool_choice != "auto":
            body["tool_choice"] = _choice_body(request.tool_choice)
    body |= request.options.fields()
    if request.response_format is not None:
        body["response_format"] = request.response_format
    if request.is_streamed:
        body |= {"stream": True, "stream_options": {"include_usage": True}}
    return body


def _function_body(function: Function) -> dict[str, Any]:
    body: dict[str, Any] = msgspec.to_builtins(function)
    if function.strict is None:
        del body["strict"]
    return body


def _choice_body(choice: ToolChoice) -> str | dict[str, Any]:
    if isinstance(choice, NamedFunction):
        return {"type": "function", "function": {"name": choice.name}}
    return choice


def _part_body(part: str | Image) -> dict[str, Any]:
    if isinstance(part, str):
        return {"type": "text", "text": part}
    image = {"url": part.url}
    if part.detail is not None:
        image["detail"] = part.detail
    return {"type": "image_url", "image_url": image}


def _message_body(message: Message) -> dict[str, Any]:
    content: Any = None if message.tool_calls and not message.content else message.content
    if message.parts:
        content = [_part_body(part) for part in message.parts]
    body: dict[str, Any] = {"role": message.role, "content": content}
    if message.tool_calls:
        body["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments},
            }
            for call in message.tool_calls
        ]
    if message.tool_call_id is not None:
        body["tool_call_id"] = message.tool_call_id
    if message.name is not None:
        body["name"] = message.name
    return body
