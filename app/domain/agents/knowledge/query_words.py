"""The words of a question, and where a text has them."""

import re
from itertools import islice

_MAX_WORDS = 100
_WORD_GROUP = re.compile(r"\w+(?:[-.,/:@]\w+)*")
_WORD = re.compile(r"\w+")
# A longer word matches without its ending.
_MIN_STEM_CHARS = 4
_ENDING_CHARS = 2
# English, like the stop words of the full-text index.
_FUNCTION_WORD = re.compile(
    r"a|about|am|an|and|any|are|as|at|be|been|but|by|can|could|did|do|does|"
    r"for|from|get|had|has|have|how|i|if|in|into|is|it|its|may|me|my|no|not|"
    r"of|on|or|our|out|should|so|some|than|that|the|their|them|then|there|these|"
    r"they|this|to|us|was|we|were|what|when|where|which|who|whom|whose|why|will|"
    r"with|would|you|your"
)


def list_words(query: str) -> dict[str, bool]:
    """Returns the words to look for, and whether each is whole or without its ending. Numbers and
    names with marks in them are listed as a whole and in parts.
    """
    words: dict[str, bool] = {}
    for group in _WORD_GROUP.findall(query.lower()):
        if not is_function_word(group):
            words |= dict(map(_cut_ending, [group, *_WORD.findall(group)]))
    return dict(islice(words.items(), _MAX_WORDS))


def is_function_word(word: str) -> bool:
    return _FUNCTION_WORD.fullmatch(word) is not None


def _cut_ending(word: str) -> tuple[str, bool]:
    if len(word) <= _MIN_STEM_CHARS or not word.isalpha():
        return word, True
    return word[: max(_MIN_STEM_CHARS, len(word) - _ENDING_CHARS)], False


def find_word(text: str, word: str, *, is_whole: bool, start: int = 0) -> int:
    """Returns the place of the word from `start` on; -1 when the text does not have it."""
    place = text.find(word, start)
    while place >= 0:
        end = place + len(word)
        starts_word = place == 0 or not text[place - 1].isalnum()
        if starts_word and not (is_whole and text[end : end + 1].isalnum()):
            return place
        place = text.find(word, place + 1)
    return -1


def has_word(text: str, word: str, *, is_whole: bool) -> bool:
    return find_word(text, word, is_whole=is_whole) >= 0
