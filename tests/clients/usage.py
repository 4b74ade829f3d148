"""What an author of a client writes in Python. Takes the address of an instance and a token."""

import sys

from parley_client import AuthenticatedClient  # type: ignore[import-not-found]
from parley_client.api.agents import (  # type: ignore[import-not-found]
    create_agent,
    get_agent,
    list_agents,
)
from parley_client.models import CreateAgent, Error  # type: ignore[import-not-found]


def main(url: str, token: str) -> None:
    body = CreateAgent("Shop assistant", "local/smollm2", "You help in a shop.", temperature=0)
    with AuthenticatedClient(base_url=url, token=token) as client:
        created = create_agent.sync(client=client, body=body)
        page = list_agents.sync(client=client, search="Shop", per_page=1)
        missing = get_agent.sync(client=client, agent_id="agt_none")
    assert [item.id for item in page.data] == [created.id]
    assert created.created_at.tzinfo is not None
    assert isinstance(missing, Error)
    assert missing.error.message


if __name__ == "__main__":
    main(*sys.argv[1:])
