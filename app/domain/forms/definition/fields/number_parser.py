"""Numbers in messages of people. A message with two numbers, or with one that has several
readings, like 1,5 or "two million", is refused.
"""

import re
from typing import Final

from app.kit.languages import ENGLISH

from . import local_numbers
from .language_tables import get_language
from .protocol import check_message
from .wordings import refuse, show_decimal

_SMALL_WORDS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
    "fifteen sixteen seventeen eighteen nineteen"
)
_TEN_WORDS = "twenty thirty forty fifty sixty seventy eighty ninety"
_SMALL: Final = _SMALL_WORDS.split()
_TENS: Final = _TEN_WORDS.split()
_VALUES: Final = {word: value for value, word in enumerate(_SMALL)} | {
    word: 10 * value for value, word in enumerate(_TENS, 2)
}
# With "one" only where it counts, unlike in "no one" and "this one".
_WORDS = re.compile(
    rf"\b(?:({'|'.join(_TENS)})(?:[\s-]+({'|'.join(_SMALL[1:10])}))?"
    rf"|(?<!\bno )(?<!\bthis )(?<!\bthat )(?<!\bthe )({'|'.join(_SMALL)}))\b",
    re.IGNORECASE,
)
_MINUS = re.compile(r"\b(?:minus|negative)\s+(?=[0-9.])|\u2212", re.IGNORECASE)
# Words and letters that multiply or divide the number next to them.
_SCALE = re.compile(
    r"\b(?:hundred|thousand|million|billion|trillion|dozen|half|quarter|third)s?\b"
    r"|[0-9]\s?(?:k|m|mn|mio|bn)\b",
    re.IGNORECASE,
)
_TOKEN = re.compile(
    r"(?<![\w.,])(?<!\w-)[-+]?\.?[0-9][0-9.,]{0,30}(?:e[-+]?[0-9]{1,3}(?!\w))?", re.IGNORECASE
)
_PLAIN = re.compile(
    r"[-+]?(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]*)(?:\.[0-9]+)?(?:e[-+]?[0-9]+)?", re.IGNORECASE
)
_SCORE = re.compile(
    r"(?<![\w.,/-])([0-9]{1,15}(?:\.[0-9]{1,9})?)\s*(?:/|out of|of)\s*"
    r"([0-9]{1,15}(?:\.[0-9]{1,9})?)(?![0-9.,]*[0-9/])",
    re.IGNORECASE,
)


def parse_number(text: str) -> float:
    """Returns the one number in a text, in digits or as words up to 99. Raises WrongValue."""
    if (language := get_language()) != ENGLISH:
        return local_numbers.parse_number(language, check_message(text))
    text = _write_in_digits(check_message(text))
    tokens = {token.rstrip(".,") for token in _TOKEN.findall(text)}
    rest = _TOKEN.sub(" ", text)
    if (
        len(tokens) != 1
        or _SCALE.search(text)
        or any(letter.isnumeric() for letter in rest)
        or not _PLAIN.fullmatch(token := tokens.pop())
    ):
        raise refuse("one_number")
    return float(token.replace(",", ""))


def parse_score(text: str, most: float) -> float:
    """Also understands "3 out of 5", where 5 is the most that there is. Raises WrongValue."""
    if (language := get_language()) != ENGLISH:
        pair = local_numbers.parse_score(language, check_message(text))
        return parse_number(text) if pair is None else _check_total(*pair, most)
    scores = set(_SCORE.findall(_write_in_digits(check_message(text))))
    if not scores:
        return parse_number(text)
    score, total = scores.pop()
    if scores:
        raise refuse("one_number")
    return _check_total(float(score), float(total), most)


def _check_total(score: float, total: float, most: float) -> float:
    if total != most:
        raise refuse("score", max=show_decimal(f"{most:.15g}"))
    return score


def _write_in_digits(text: str) -> str:
    return _MINUS.sub("-", _WORDS.sub(_to_digits, text))


def _to_digits(match: re.Match[str]) -> str:
    return str(sum(_VALUES[word.lower()] for word in match.groups() if word))
