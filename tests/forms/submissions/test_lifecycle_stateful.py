"""Random orders of requests to forms, compared with a model after each of them."""

import asyncio
from collections import Counter
from collections.abc import Coroutine
from typing import Any, ClassVar, TypeVar

import httpx
import msgspec
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from litestar import Litestar

from tests.assertions import refused
from tests.forms.api import PATH, PUBLIC, act, list_forms, list_versions, send
from tests.lengths import rounds
from tests.platform.events.database import load_events
from tests.world import Client, World

T = TypeVar("T")
_MAX_FORMS = 4
# All fields are required, so that answers fit exactly one of these.
FIELD_SETS = (("a",), ("b",), ("a", "b"))
field_sets = st.sampled_from(FIELD_SETS)
# Which of the forms a request is for; the remainder of a division.
numbers = st.integers(0, _MAX_FORMS - 1)
_NEXT = {
    ("draft", "publish"): "published",
    ("archived", "publish"): "published",
    ("published", "unpublish"): "draft",
    ("draft", "archive"): "archived",
    ("published", "archive"): "archived",
}


class ModelForm(msgspec.Struct):
    """What a form should be. `versions` has the fields of each, and whether it was published."""

    id: str
    slug: str
    versions: list[tuple[tuple[str, ...], bool]]
    status: str = "draft"
    is_deleted: bool = False
    # The versions of the submissions by their ids.
    submissions: dict[str, int] = {}

    def set_fields(self, names: tuple[str, ...]) -> bool:
        """Returns whether anything changed."""
        current, was_published = self.versions[-1]
        if names == current:
            return False
        if not was_published:
            self.versions.pop()
        self.versions.append((names, self.status == "published"))
        return True

    def publish(self) -> None:
        self.versions[-1] = (self.versions[-1][0], True)

    def expect_answer(self, names: tuple[str, ...], version: int | None) -> tuple[int, str]:
        """Returns status and code of the answer to a submission."""
        if self.is_deleted:
            return 404, "form_not_found"
        if self.status != "published":
            return 409, "form_not_published"
        number = version or len(self.versions)
        if number > len(self.versions) or not self.versions[number - 1][1]:
            return 404, "form_version_not_found"
        return (201, "") if self.versions[number - 1][0] == names else (400, "validation_error")


def _build_fields(names: tuple[str, ...]) -> list[dict[str, Any]]:
    return [{"id": name, "type": "text", "label": name, "required": True} for name in names]


class Machine(RuleBasedStateMachine):
    """Sends the same requests to the API and to the model."""

    loop: ClassVar[asyncio.AbstractEventLoop]
    world: ClassVar[World]

    client: Client
    visitor: Client
    forms: list[ModelForm]
    events: Counter[str]

    def _run(self, call: Coroutine[Any, Any, T]) -> T:
        return self.loop.run_until_complete(call)

    @initialize(names=field_sets)
    def begin(self, names: tuple[str, ...]) -> None:
        """Starts with a submission, since few orders of requests lead to one."""
        self.client, self.visitor = self._run(self.world.user()), self.world.anonymous()
        self.forms, self.events = [], Counter()
        self.create(names)
        self.change_status(0, "publish")
        self._submit(self.forms[0], names, None, is_visitor=True)

    def _choose(self, number: int) -> ModelForm:
        return self.forms[number % len(self.forms)]

    def _add(self, answer: httpx.Response, names: tuple[str, ...]) -> None:
        assert answer.status_code == 201, answer.text
        data = answer.json()["data"]
        assert data["status"] == "draft"
        self.forms.append(ModelForm(data["id"], data["slug"], [(names, False)]))
        self.events["form.created"] += 1

    # Requests

    @precondition(lambda self: len(self.forms) < _MAX_FORMS)
    @rule(names=field_sets)
    def create(self, names: tuple[str, ...]) -> None:
        body = {"name": "Form", "fields": _build_fields(names)}
        self._add(self._run(self.client.post(PATH, body)), names)

    @precondition(lambda self: len(self.forms) < _MAX_FORMS)
    @rule(number=numbers)
    def duplicate(self, number: int) -> None:
        form = self._choose(number)
        answer = self._run(act(self.client, {"id": form.id}, "duplicate"))
        if form.is_deleted:
            refused(answer, 404, "form_not_found")
        else:
            self._add(answer, form.versions[-1][0])

    @rule(number=numbers, names=field_sets)
    def change_fields(self, number: int, names: tuple[str, ...]) -> None:
        form = self._choose(number)
        body = {"fields": _build_fields(names)}
        answer = self._run(self.client.put(f"{PATH}/{form.id}", body))
        if form.is_deleted:
            refused(answer, 404, "form_not_found")
            return
        self.events["form.updated"] += form.set_fields(names)
        assert answer.json()["data"]["version"] == len(form.versions)

    @rule(number=numbers, action=st.sampled_from(["publish", "unpublish", "archive"]))
    def change_status(self, number: int, action: str) -> None:
        form = self._choose(number)
        answer = self._run(act(self.client, {"id": form.id}, action))
        status = _NEXT.get((form.status, action))
        if form.is_deleted:
            refused(answer, 404, "form_not_found")
        elif status is None:
            refused(answer, 409, "invalid_state")
        else:
            assert answer.json()["data"]["status"] == status
            form.status = status
            if action == "publish":
                form.publish()
            self.events["form.published" if action == "publish" else "form.updated"] += 1

    @rule(number=numbers, names=field_sets, version=st.none() | st.integers(1, 4))
    def submit(self, number: int, names: tuple[str, ...], version: int | None) -> None:
        self._submit(self._choose(number), names, version, is_visitor=version is None)

    @precondition(lambda self: any(form.status == "published" for form in self.forms))
    @rule(data=st.data(), is_visitor=st.booleans())
    def submit_what_fits(self, data: st.DataObject, is_visitor: bool) -> None:  # noqa: FBT001  # drawn
        published = [form for form in self.forms if form.status == "published"]
        form = data.draw(st.sampled_from(published))
        version = data.draw(st.integers(1, len(form.versions)))
        self._submit(form, form.versions[version - 1][0], version, is_visitor=is_visitor)

    def _submit(
        self, form: ModelForm, names: tuple[str, ...], version: int | None, *, is_visitor: bool
    ) -> None:
        data = dict.fromkeys(names, "Text")
        if is_visitor:
            answer = self._run(send(self.visitor, {"slug": form.slug}, data, version=version))
        else:
            body = {"data": data, "version": version}
            answer = self._run(self.client.post(f"{PATH}/{form.id}/submit", body))
        status, code = form.expect_answer(names, version)
        if status == 201:
            assert answer.status_code == 201, answer.text
            submission_id = answer.json()["data"]["submission_id"]
            form.submissions[submission_id] = version or len(form.versions)
            self.events["form.submission.created"] += 1
        else:
            refused(answer, status, code)

    @precondition(lambda self: any(form.submissions for form in self.forms))
    @rule(data=st.data())
    def delete_submission(self, data: st.DataObject) -> None:
        form = data.draw(st.sampled_from([form for form in self.forms if form.submissions]))
        submission_id = data.draw(st.sampled_from(sorted(form.submissions)))
        path = f"{PATH}/{form.id}/submissions/{submission_id}"
        answer = self._run(self.client.delete(path))
        if form.is_deleted:
            refused(answer, 404, "form_not_found")
        else:
            assert answer.status_code == 204
            del form.submissions[submission_id]
            # The event has its answers, and is deleted with it.
            self.events["form.submission.created"] -= 1

    @precondition(lambda self: len(self.forms) > 1)
    @rule(number=numbers)
    def delete(self, number: int) -> None:
        form = self._choose(number)
        answer = self._run(self.client.delete(f"{PATH}/{form.id}"))
        if form.is_deleted:
            refused(answer, 404, "form_not_found")
        else:
            assert answer.status_code == 204
            form.is_deleted = True
            self.events["form.deleted"] += 1

    # Comparison

    @invariant()
    def list_equals_model(self) -> None:
        listed = {form["id"]: form for form in self._run(list_forms(self.client))["data"]}
        expected = {form.id: form for form in self.forms if not form.is_deleted}
        assert listed.keys() == expected.keys()
        for form_id, form in expected.items():
            item = listed[form_id]
            assert (item["status"], item["version"]) == (form.status, len(form.versions))
            assert item["submission_count"] == len(form.submissions)
            assert item["field_count"] == len(form.versions[-1][0])

    @invariant()
    def visitors_see_published_forms_with_their_newest_fields(self) -> None:
        for form in self.forms:
            answer = self._run(self.visitor.get(f"{PUBLIC}/{form.slug}"))
            if form.is_deleted or form.status != "published":
                refused(answer, 404, "form_not_found")
                continue
            shown = answer.json()["data"]
            names = tuple(field["id"] for field in shown["fields"])
            assert (shown["version"], names) == (len(form.versions), form.versions[-1][0])

    def teardown(self) -> None:
        """Versions, the versions of submissions, and events are compared at the end."""
        if hasattr(self, "forms"):
            self._run(self._compare_rest())

    async def _compare_rest(self) -> None:
        for form in self.forms:
            if form.is_deleted:
                continue
            versions = await list_versions(self.client, {"id": form.id})
            published = [bool(item["published_at"]) for item in reversed(versions)]
            assert published == [was_published for _, was_published in form.versions]
            answer = await self.client.get(f"{PATH}/{form.id}/submissions?per_page=100")
            stored = {item["id"]: item["version"] for item in answer.json()["data"]}
            assert stored == form.submissions
        log = await load_events(self.world.services, self.client.tenant_id)
        # A worker of another test may process submissions meanwhile.
        types = Counter(row["type"] for row in log if row["type"] != "form.submission.updated")
        assert types == +self.events


@pytest.fixture(scope="session")
async def loop() -> asyncio.AbstractEventLoop:
    """The application's event loop, which is idle while a synchronous test runs."""
    return asyncio.get_running_loop()


def test_forms_do_what_the_model_does_in_whatever_order_requests_come(
    app: Litestar, loop: asyncio.AbstractEventLoop
) -> None:
    Machine.loop, Machine.world = loop, World(app)
    run_state_machine_as_test(
        Machine,
        settings=settings(
            max_examples=rounds(8, 20),
            # An address may submit a form twenty times in a minute.
            stateful_step_count=19,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow],
        ),
    )
