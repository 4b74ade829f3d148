"""Plural categories of whole numbers, by the rules of Unicode's CLDR."""

from collections.abc import Callable, Mapping
from typing import Final

from app.kit.languages import Language

Rule = Callable[[int], str]
_MILLION: Final = 1_000_000


def _choose_one(count: int) -> str:
    return "one" if count == 1 else "other"


def _choose_one_below_two(count: int) -> str:
    return "one" if count in {0, 1} else "other"


def _choose_other(_count: int) -> str:
    return "other"


def _with_millions(rule: Rule) -> Rule:
    def choose(count: int) -> str:
        return "many" if count and count % _MILLION == 0 else rule(count)

    return choose


def _choose_polish(count: int) -> str:
    if count == 1:
        return "one"
    return "few" if _ends_in_two_to_four(count) else "many"


def _choose_russian(count: int) -> str:
    if count % 10 == 1 and count % 100 != 11:  # noqa: PLR2004  # eleven
        return "one"
    return "few" if _ends_in_two_to_four(count) else "many"


def _ends_in_two_to_four(count: int) -> bool:
    return count % 10 in {2, 3, 4} and count % 100 not in {12, 13, 14}


def _choose_arabic(count: int) -> str:
    names = {0: "zero", 1: "one", 2: "two"}
    if count in names:
        return names[count]
    rest = count % 100
    if rest in range(3, 11):
        return "few"
    return "many" if rest in range(11, 100) else "other"


_ROMANCE: Final = ("one", "many", "other")
_SLAVIC: Final = ("one", "few", "many", "other")
_RULES: Final[Mapping[Language, tuple[Rule, tuple[str, ...]]]] = {
    "en": (_choose_one, ("one", "other")),
    "de": (_choose_one, ("one", "other")),
    "fr": (_with_millions(_choose_one_below_two), _ROMANCE),
    "es": (_with_millions(_choose_one), _ROMANCE),
    "pt": (_with_millions(_choose_one_below_two), _ROMANCE),
    "it": (_with_millions(_choose_one), _ROMANCE),
    "nl": (_choose_one, ("one", "other")),
    "pl": (_choose_polish, _SLAVIC),
    "tr": (_choose_one, ("one", "other")),
    "ru": (_choose_russian, _SLAVIC),
    "ar": (_choose_arabic, ("zero", "one", "two", "few", "many", "other")),
    "hi": (_choose_one_below_two, ("one", "other")),
    "ja": (_choose_other, ("other",)),
    "zh": (_choose_other, ("other",)),
}


def select_category(language: Language, count: int) -> str:
    return _RULES[language][0](count)


def list_categories(language: Language) -> tuple[str, ...]:
    """Returns the categories that a text with a count needs."""
    return _RULES[language][1]
