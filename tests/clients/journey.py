"""A conversation in which the model calls a tool of the agent and a function of the client."""

from typing import Any

import msgspec

from tests.model_server import Reply
from tests.scripted_agents import Talker

QUESTION = "What is the time and the weather?"
ANSWER = "It is 9, and cloudy."


def tell_time(zone: str) -> str:
    """Tells the time."""
    return f"09:00 {zone}"


class Journey(msgspec.Struct):
    talk: Talker
    helper: Talker
    url: str
    key: str

    @property
    def model(self) -> str:
        return self.talk.agent_id

    @property
    def environment(self) -> dict[str, str]:
        """For a program of its own."""
        return {"PARLEY_URL": self.url, "PARLEY_KEY": self.key, "PARLEY_AGENT": self.model}

    @property
    def asked(self) -> list[dict[str, Any]]:
        return self.talk.asked

    def script(self) -> None:
        """The model calls a tool of the agent and a function of the client side by side."""
        self.helper.script(Reply(texts=["Cloudy."]))
        calls = [("delegate_to_helper", {"task": "Weather"}), ("tell_time", {"zone": "UTC"})]
        self.talk.script(Reply(texts=[], calls=calls), Reply(texts=["It is 9,", " and cloudy."]))

    def check(self, later: int = 0) -> None:
        """Each tool ran once, where it belongs, and the model saw both results. `later` is the
        number of further questions.
        """
        assert len(self.helper.asked) == 1
        first, second, *more = self.asked
        assert len(more) == later
        offered = {tool["function"]["name"] for tool in first["tools"]}
        assert offered == {"delegate_to_helper", "tell_time"}
        results = [item["content"] for item in second["messages"] if item["role"] == "tool"]
        assert results == ["Cloudy.", "09:00 UTC"]
