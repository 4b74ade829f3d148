import hashlib, hmac
from tests.world import Client

async def test_thin(developer: Client, courier, receiver) -> None:
    made = await developer.post("/api/v1/webhooks", {"url": receiver.url + "/200", "events": ["agent.created"], "headers": {"X-Team": "a", "Authorization": "Bearer xyzzy"}})
    assert made.status_code == 201, made.text
    print(made.json())
    hook = made.json()
    agent = await developer.post("/api/v1/agents", {"name": "A", "primary_model": "local/smollm2", "system_prompt": "x"})
    assert agent.status_code == 201, agent.text
    got = (await receiver.wait_for(1))[0]
    print(dict(got.headers), got.body)
    ts = got.headers["X-Service-Timestamp"]
    assert got.headers["X-Service-Signature"] == "sha256=" + hmac.new(hook["secret"].encode(), ts.encode() + b"." + got.body, hashlib.sha256).hexdigest()
    tried = await developer.post(f"/api/v1/webhooks/{hook['id']}/test", {"event_type": "form.submission.created"})
    print(tried.json())
    assert tried.json()["status"] == "delivered"
    page = await developer.get(f"/api/v1/webhooks/{hook['id']}/executions")
    print(page.json())
    one = await developer.get(f"/api/v1/webhooks/{hook['id']}/executions/{page.json()['data'][0]['id']}")
    print(one.json())
    sub = await developer.post("/api/v1/event-subscriptions", {"event_type": "agent.updated", "action_type": "webhook", "action_config": {"url": receiver.url + "/200/sub", "headers": {"Authorization": "x y z"}}, "filters": {"agent_id": agent.json()["id"]}})
    print(sub.json())
    assert sub.status_code == 201, sub.text
    t = await developer.post("/api/v1/events/test", {"event_type": "agent.updated", "data": {"agent_id": agent.json()["id"]}})
    print(t.json())
    assert t.json()["matched"] == 1
    await receiver.wait_for(1, "/200/sub")
    inc = await developer.post("/api/v1/incoming-webhooks", {"name": "Orders", "workflow_id": "wfl_1"})
    print(inc.json())
    a = await developer.http.post(f"/webhooks/in/{inc.json()['slug']}", json={"a": 1})
    print(a.status_code, a.text)
    log = await developer.get(f"/api/v1/incoming-webhooks/{inc.json()['id']}/events")
    print(log.json())
    tr = await developer.get(f"/api/v1/event-log/trace/{t.json()['correlation_id']}")
    print(tr.json())
    assert 0
