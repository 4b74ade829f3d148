"""Which language a document is in, and what follows for its words.

Languages are told by py3langid. A language that it takes for another one costs a part of the
quality of a search, and nothing else.
"""

import importlib
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

# The Snowball stemmer of each language that has one.
STEMMERS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "ar": "arabic",
        "ca": "catalan",
        "cs": "czech",
        "da": "danish",
        "de": "german",
        "el": "greek",
        "en": "english",
        "es": "spanish",
        "et": "estonian",
        "eu": "basque",
        "fa": "persian",
        "fi": "finnish",
        "fr": "french",
        "ga": "irish",
        "hi": "hindi",
        "hu": "hungarian",
        "hy": "armenian",
        "id": "indonesian",
        "it": "italian",
        "lt": "lithuanian",
        "ne": "nepali",
        "nl": "dutch",
        "no": "norwegian",
        "pl": "polish",
        "pt": "portuguese",
        "ro": "romanian",
        "ru": "russian",
        "sr": "serbian",
        "sv": "swedish",
        "ta": "tamil",
        "tr": "turkish",
    }
)
# With fewer languages to choose from, short texts are mistaken less often.
_WITHOUT_STEMMER = (
    *("bg", "bn", "he", "hr", "ja", "ka", "ko", "lv", "sk", "sl", "th", "uk", "ur", "vi", "zh"),
)
_NORWEGIAN = {"nb": "no", "nn": "no"}
_SAMPLE_CHARS = 2000
_MIN_LETTER_BYTES = 12

_loading = threading.Lock()
_identifier: Any = None


def tell(texts: Iterable[str]) -> str | None:
    """Returns the code of the language that the passages of a document begin with, like "de"; None
    for a text with hardly a word. Blocks for a part of a second on the first use.
    """
    sample = _take_sample(texts)
    letters = "".join(filter(str.isalpha, sample))
    if len(letters.encode("utf-8", "replace")) < _MIN_LETTER_BYTES:
        return None
    try:
        code: str = _load().classify(sample)[0]
    except ImportError:
        # The model is packed by LZMA, which some builds of Python lack.
        return None
    return _NORWEGIAN.get(code, code)


def _take_sample(texts: Iterable[str]) -> str:
    parts, chars = [], 0
    for text in texts:
        parts.append(text[: _SAMPLE_CHARS - chars])
        chars += len(parts[-1])
        if chars >= _SAMPLE_CHARS:
            break
    return "\n".join(parts)


def _load() -> Any:
    global _identifier  # noqa: PLW0603  # loaded once for a process
    with _loading:
        if _identifier is None:
            # Takes a third of a second.
            langid = importlib.import_module("py3langid.langid")
            model = Path(langid.MODEL_DIR) / langid.MODEL_FILE
            identifier = langid.LanguageIdentifier.from_modelpath(str(model))
            known = set(identifier.labels)
            wanted = {*STEMMERS, *_WITHOUT_STEMMER, *_NORWEGIAN}
            identifier.set_languages(sorted(wanted & known))
            _identifier = identifier
        return _identifier
