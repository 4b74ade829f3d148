"""The console offers the providers that the server knows."""

import re

from app.domain.agents.llm.providers import PROVIDERS, SEARCH_PROVIDERS
from app.web.console_build import SOURCE

_ROW = re.compile(r'^  \["(\w+)", "([^"]+)"\],$', re.MULTILINE)


def test_every_provider_can_be_chosen_by_its_title() -> None:
    text = (SOURCE / "src/areas/settings/providers.ts").read_text(encoding="utf-8")
    rows = dict(_ROW.findall(text))
    titles = {provider.name: provider.title for provider in PROVIDERS.values()}
    assert {name: title for name, title in rows.items() if name in PROVIDERS} == titles
    assert rows.keys() - PROVIDERS.keys() == SEARCH_PROVIDERS
