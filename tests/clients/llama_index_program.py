"""Calls a function and streams with LlamaIndex, and prints both answers."""

import json
import os
import sys

from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.tools import FunctionTool
from llama_index.llms.openai_like import OpenAILike

from tests.clients.journey import QUESTION, tell_time


def _model() -> OpenAILike:
    return OpenAILike(
        model=os.environ["PARLEY_AGENT"],
        api_base=os.environ["PARLEY_URL"],
        api_key=os.environ["PARLEY_KEY"],
        is_chat_model=True,
        is_function_calling_model=True,
        max_retries=0,
    )


def loop() -> str:
    clock, model = FunctionTool.from_defaults(tell_time), _model()
    history = [ChatMessage(role="user", content=QUESTION)]
    answer = model.chat_with_tools([clock], chat_history=history)
    history.append(answer.message)
    for call in model.get_tool_calls_from_response(answer):
        result = str(clock.call(**call.tool_kwargs))
        more = {"tool_call_id": call.tool_id}
        history.append(ChatMessage(role="tool", content=result, additional_kwargs=more))
    return str(model.chat_with_tools([clock], chat_history=history).message.content)


def stream() -> str:
    chunks = _model().stream_chat([ChatMessage(role="user", content=QUESTION)])
    return "".join(chunk.delta or "" for chunk in chunks)


if __name__ == "__main__":
    sys.stdout.write(json.dumps({"loop": loop(), "stream": stream()}))
