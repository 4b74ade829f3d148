"""Which models of speech an operator can choose."""

import pytest

from app.settings import SettingsError, load


def test_the_embedded_models_and_those_of_providers_can_be_chosen() -> None:
    assert load({}).transcription_model == "local/moonshine"
    assert load({}).speech_model == "local/espeak"
    chosen = {"PARLEY_TRANSCRIPTION_MODEL": "openai/whisper-1", "PARLEY_SPEECH_MODEL": "a/b/c-1"}
    assert load(chosen).transcription_model == "openai/whisper-1"
    assert load(chosen).speech_model == "a/b/c-1"


def test_other_names_are_refused_with_one_line(subtests: pytest.Subtests) -> None:
    for name, value in (
        ("TRANSCRIPTION_MODEL", "local/whisper"),
        ("TRANSCRIPTION_MODEL", "whisper-1"),
        ("TRANSCRIPTION_MODEL", "/whisper-1"),
        ("SPEECH_MODEL", "local/moonshine"),
        ("SPEECH_MODEL", "openai/"),
        ("SPEECH_MODEL", "openai/tts 1"),
        ("SPEECH_MODEL", "openai/tts\n1"),
    ):
        with subtests.test(name=name, value=value):
            with pytest.raises(SettingsError, match=f"^PARLEY_{name}\\b") as caught:
                load({f"PARLEY_{name}": value})
            assert len(str(caught.value).splitlines()) == 1
