"""What a small model should not say: the same sentence again and again, and parts of its prompt."""

import re

from .openai_requests import QUOTATION_MARK

# A sentence with the space before it.
_SENTENCE = re.compile(r"\s*\S.*?(?:[.!?:](?=\s)|(?=\n))", re.DOTALL)
# Shorter ones, such as "Yes." or an item of a list, may be said twice.
_MIN_CHARS = 15
# How sentences about the quoted passages begin.
_ABOUT_PROMPT = (
    QUOTATION_MARK.strip(),
    "the passage is quoted",
    "the passages are quoted",
    "below are numbered passages",
)


class TextFilter:
    """Passes an answer on as it arrives. Holds back only what may turn out to be unwanted: the
    beginning of a sentence that was said before, or of one about the prompt.
    """

    def __init__(self) -> None:
        self._said: set[str] = set()
        self._rest = ""
        # How much of the rest was passed on.
        self._passed = 0
        self.is_over = False

    def add(self, text: str) -> str:
        """Returns what to pass on now. `is_over` is set once the answer repeats itself."""
        self._rest += text
        parts: list[str] = []
        while not self.is_over and (match := _SENTENCE.match(self._rest)) is not None:
            parts.append(self._end_sentence(match.end()))
        if not self.is_over and not self._may_be_unwanted(_normalize(self._rest)):
            # Space may be followed by a sentence that is left out.
            parts.append(self._pass_on(len(self._rest.rstrip())))
        return "".join(parts)

    def finish(self) -> str:
        """Returns what was held back at the end of the answer, unless it is unwanted."""
        sentence = _normalize(self._rest)
        is_cut_repetition = len(sentence) >= _MIN_CHARS and self._may_be_unwanted(sentence)
        return "" if self.is_over or is_cut_repetition else self._pass_on(len(self._rest.rstrip()))

    def _end_sentence(self, end: int) -> str:
        sentence = _normalize(self._rest[:end])
        if len(sentence) >= _MIN_CHARS and sentence in self._said:
            self.is_over = True
            return ""
        self._said.add(sentence)
        passed = "" if _is_about_prompt(sentence) else self._pass_on(end)
        self._rest, self._passed = self._rest[end:], 0
        return passed

    def _pass_on(self, end: int) -> str:
        passed = self._rest[self._passed : end]
        self._passed = max(self._passed, end)
        return passed

    def _may_be_unwanted(self, sentence: str) -> bool:
        known = (*self._said, *_ABOUT_PROMPT)
        return _is_about_prompt(sentence) or any(text.startswith(sentence) for text in known)


def _normalize(text: str) -> str:
    return " ".join(text.lower().split())


def _is_about_prompt(sentence: str) -> bool:
    return sentence.startswith(_ABOUT_PROMPT) or QUOTATION_MARK.strip() in sentence
