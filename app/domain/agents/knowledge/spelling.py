"""Which words of a text a mistyped word may stand for."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from .question_languages import find_language

# Shorter words have too many neighbours. Longer ones may have two mistakes.
MIN_CHARS: Final = 5
MAX_CHARS: Final = 40
_MIN_CHARS_FOR_TWO = 10
# Letters that are taken for each other: neighbours on a keyboard, and those that sound alike. With
# another wrong letter, it is mostly another word.
_ROWS = "qwertyuiop asdfghjkl zxcvbnm"
_ALIKE = ("aei", "bpv", "ckqsz", "dt", "fvw", "gj", "ijy", "mn", "ou", "sxz")
# Of words that are equally near.
_MAX_SIMILAR = 2
WORD: Final = re.compile(r"[^\W_]+")
# Scripts without spaces between words, and those of syllables: one sign more is another word.
_NOT_SPELLED = re.compile(r"[\d\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\ud7ff\uf900-\ufaff]")


def list_words(text: str) -> list[str]:
    return WORD.findall(text.lower())


def list_correctable(text: str) -> list[str]:
    """Leaves out numbers, short words and function words."""
    words = list_words(text)
    function_words = find_language(words).function_words
    return [
        word
        for word in dict.fromkeys(words)
        if MIN_CHARS <= len(word) <= MAX_CHARS
        and word not in function_words
        and not _NOT_SPELLED.search(word)
    ]


def is_like_function_word(word: str, text: str) -> bool:
    """Whether a function word of the text's language becomes this word by one mistake."""
    function_words = find_language(list_words(text)).function_words
    return any(
        len(other) >= MIN_CHARS and measure_distance(word, other, 1) <= 1
        for other in function_words
    )


def list_similar(word: str, texts: Iterable[str]) -> list[str]:
    """Returns the words of the texts that are nearest to the word, the most frequent first; the
    word itself if it is one of them. The first letter is hardly ever mistyped, unless it is swapped
    with the second.
    """
    limit = max_distance(word)
    lengths = f"{len(word) - limit - 1},{len(word) + limit - 1}"
    like = re.compile(rf"(?<![^\W_])(?:{word[0]}|(?={word[1::-1]}).)[^\W_]{{{lengths}}}(?![^\W_])")
    counts = Counter(found for text in texts for found in set(like.findall(text.lower())))
    ranked = sorted(
        (distance, -count, candidate)
        for candidate, count in counts.items()
        if (distance := measure_distance(word, candidate, limit)) <= limit
    )
    return [found for distance, _, found in ranked if distance == ranked[0][0]][:_MAX_SIMILAR]


def max_distance(word: str) -> int:
    return 1 + (len(word) >= _MIN_CHARS_FOR_TWO)


def measure_distance(first: str, second: str, limit: int) -> int:
    """Returns how many letters are added, missing, swapped with their neighbour, or taken for
    another; more than `limit` when there are more.
    """
    if first == second:
        return 0
    too_far = limit + 1
    if abs(len(first) - len(second)) > limit or len(set(first) ^ set(second)) > 2 * limit:
        return too_far
    before: list[int] = []
    previous = list(range(len(second) + 1))
    for i, letter in enumerate(first, 1):
        current = [i]
        for j, other in enumerate(second, 1):
            steps = (previous[j] + 1, current[-1] + 1, previous[j - 1] + _cost_of(letter, other))
            distance = min(steps)
            if i > 1 and j > 1 and letter == second[j - 2] and first[i - 2] == other:
                distance = min(distance, before[j - 2] + 1)
            current.append(distance)
        if min(current) > limit:
            return too_far
        before, previous = previous, current
    return min(previous[-1], too_far)


@lru_cache(maxsize=4096)
def _cost_of(letter: str, other: str) -> int:
    """A letter that is not taken for another is one more and one less."""
    if letter == other:
        return 0
    first, second = _without_accent(letter), _without_accent(other)
    if first == second or not (first + second).isascii():
        return 1
    is_near = first + second in _ROWS or second + first in _ROWS
    return 1 if is_near or any(first in group and second in group for group in _ALIKE) else 2


def _without_accent(letter: str) -> str:
    return unicodedata.normalize("NFD", letter)[0]
