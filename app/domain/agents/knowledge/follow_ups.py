"""Makes a question whole that goes on from earlier ones, by rules.

"And on Sundays?" has no subject of its own. What a search needs besides are the words of the
question before it.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from .question_languages import (
    CHINESE_COURTESIES,
    CHINESE_ENDING,
    CHINESE_FUNCTION_WORDS,
    CHINESE_OPENERS,
    CHINESE_REFERENCES,
    UNKNOWN,
    QuestionLanguage,
    find_language,
)

# How many earlier questions count, and how much of each is read.
MAX_EARLIER: Final = 2
MAX_EARLIER_CHARS: Final = 1000
# Longer questions, and those with more words about a subject, have one of their own.
_MAX_CHARS = 300
_MAX_WORDS = 14
_MAX_SUBJECT_WORDS = 3
# A question of so few words that is all subject is one of a few words, like "Price?".
_MAX_FRAGMENT_WORDS = 2
_MAX_PREPOSITION_WORDS = 4
# With so few words behind an opener, all subject words may be about what is asked of the old one.
_MAX_OPENED_WORDS = 5
# Without a table of its language, a question is judged by its length.
_MAX_UNKNOWN_WORDS = 3
_MAX_CHINESE_CHARS = 24
_MIN_CHINESE_SUBJECT_CHARS = 2
_MAX_CHINESE_SUBJECT_CHARS = 8
_MAX_ADDED_WORDS = 12
_STEM_CHARS = 5

# Names like AX-210 are one word.
_WORD = re.compile(r"[^\W_]+(?:-[^\W_]+)*")
_PART = re.compile(r"[^\W_]+")
_SENTENCE_END = re.compile(r"(?<=[.!?。！？؟\n])")  # noqa: RUF001  # full width
_QUESTION_MARKS = ("?", "？", "؟")  # noqa: RUF001  # likewise
_HAN = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff]")
_HAN_RUN = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff]+|[^\W_]+")
_KANA_OR_HANGUL = re.compile(r"[\u3040-\u30ff\uac00-\ud7af]")


def add_subject(question: str, earlier: Sequence[str]) -> str:
    """Returns the question, followed by the words that an earlier one has about its subject where
    it goes on from that. `earlier` has the questions before it, the newest last.
    """
    if not is_follow_up(question, earlier):
        return question
    added: list[str] = []
    known = {_stem(word) for word in _list_subject_words(question, earlier)}
    language = _find_language([*earlier[-MAX_EARLIER:], question])
    # "What about Lisbon?" is about another place than the question before.
    has_reference = _has_reference(question.lower(), language)
    is_renamed = not has_reference and _list_names(question, language)
    earlier = [text[:MAX_EARLIER_CHARS] for text in earlier[-MAX_EARLIER:]]
    while earlier and len(added) < _MAX_ADDED_WORDS:
        *earlier, last = earlier
        last_question = _find_question(last)
        names = _list_names(last_question, language) if is_renamed else set()
        for word in _list_subject_words(last_question, [*earlier, question]):
            if _stem(word) not in known and word not in names:
                known.add(_stem(word))
                added.append(word)
        if not is_follow_up(last, earlier):
            break
    return " ".join([question, *added[:_MAX_ADDED_WORDS]])


def _list_names(text: str, language: QuestionLanguage) -> set[str]:
    """Returns the words in capitals or with digits, without that at the beginning."""
    is_capital = str.isupper if language.has_capital_nouns else _starts_with_capital
    words = _WORD.findall(text)[1:]
    return {word for word in words if is_capital(word) or any(map(str.isdigit, word))}


def _starts_with_capital(word: str) -> bool:
    return word[0].isupper()


def is_follow_up(question: str, earlier: Sequence[str]) -> bool:
    if len(question) > _MAX_CHARS or not any(map(str.strip, earlier[-MAX_EARLIER:])):
        return False
    if _HAN.search(question) and not _KANA_OR_HANGUL.search(question):
        return _is_chinese_follow_up(question)
    language = _find_language([*earlier[-MAX_EARLIER:], question])
    text = question.lower().replace("\u2019", "'")
    words = _PART.findall(text)
    if len(words) > _MAX_WORDS or language.courtesies.issuperset(words):
        return False
    if language is UNKNOWN:
        return 0 < len(words) <= _MAX_UNKNOWN_WORDS
    subject = [word for word in words if word not in language.function_words]
    if not subject:
        return True
    if len(subject) > _MAX_SUBJECT_WORDS:
        return False
    return (
        _opens_as_follow_up(words, len(subject), language)
        or (len(words) <= _MAX_FRAGMENT_WORDS and len(subject) == 1)
        or _has_reference(text, language)
    )


def _opens_as_follow_up(words: list[str], subject_count: int, language: QuestionLanguage) -> bool:
    if words[0] in language.prepositions and len(words) <= _MAX_PREPOSITION_WORDS:
        return True
    is_short = len(words) <= _MAX_OPENED_WORDS or subject_count < _MAX_SUBJECT_WORDS
    openers = (opener for opener in language.openers if opener[0] == words[0])
    return is_short and any(tuple(words[: len(opener)]) == opener for opener in openers)


def _has_reference(text: str, language: QuestionLanguage) -> bool:
    """Whether a word stands for something that was named before."""
    if language.objects is not None and language.objects.search(text):
        return True
    if language.idioms is not None:
        text = language.idioms.sub(" ", text)
    words = _PART.findall(text)
    if not language.references.isdisjoint(words):
        return True
    function_words = {*language.function_words, ""}
    pairs = zip(words, [*words[1:], ""], strict=False)
    return any(word in language.articles and after in function_words for word, after in pairs)


def _is_chinese_follow_up(question: str) -> bool:
    text = "".join(_HAN_RUN.findall(question))
    if len(text) > _MAX_CHINESE_CHARS or CHINESE_COURTESIES.fullmatch(text):
        return False
    subject = "".join(_list_chinese_words(question))
    if len(subject) < _MIN_CHINESE_SUBJECT_CHARS:
        return True
    if len(subject) > _MAX_CHINESE_SUBJECT_CHARS:
        return False
    return bool(
        CHINESE_OPENERS.match(text)
        or text.endswith(CHINESE_ENDING)
        or CHINESE_REFERENCES.search(text)
    )


def _find_language(texts: Sequence[str]) -> QuestionLanguage:
    words = [word for text in texts for word in _PART.findall(text[:MAX_EARLIER_CHARS].lower())]
    return find_language(words)


def _find_question(text: str) -> str:
    """Returns the last question in a text, or all of it where it asks nothing."""
    sentences = filter(_PART.search, map(str.strip, _SENTENCE_END.split(text)))
    questions = [part for part in sentences if part.endswith(_QUESTION_MARKS)]
    return questions[-1] if questions else text


def _list_subject_words(text: str, others: Sequence[str]) -> list[str]:
    if _HAN.search(text) and not _KANA_OR_HANGUL.search(text):
        return list(_list_chinese_words(text))
    language = _find_language([*others, text])
    groups = [(group, _PART.findall(group)) for group in _WORD.findall(text)]
    words = [
        word
        for group, parts in groups
        for word in (
            [group] if language.function_words.isdisjoint(map(str.lower, parts)) else parts
        )
    ]
    return [word for word in words if _has_meaning(word, language)]


def _has_meaning(word: str, language: QuestionLanguage) -> bool:
    return word.lower() not in language.function_words and (len(word) > 1 or word.isdigit())


def _list_chinese_words(text: str) -> Iterator[str]:
    for part in CHINESE_FUNCTION_WORDS.split(text):
        yield from _HAN_RUN.findall(part)


def _stem(word: str) -> str:
    return word.lower()[:_STEM_CHARS]
