"""How the search of an agent is judgement by questions whose right passages are known."""

import asyncio
from typing import Any

import pytest

from app.domain.agents.knowledge import evaluation_scores, evaluations, retrieval
from app.domain.agents.knowledge.chunks import StoredChunk
from app.domain.agents.knowledge.evaluation_schemas import RetrievalEvaluationRequest
from app.domain.agents.knowledge.evaluation_scores import Findings, Judgement, Target, judge
from app.domain.agents.knowledge.evaluations import Evaluation, EvaluationLimit
from app.domain.agents.knowledge.passages import Passage
from app.kit.validation import decode
from app.security.plans import PLANS
from app.services import Services
from tests.agents.knowledge.librarian import HANDBOOK, Librarian
from tests.assertions import refused
from tests.world import World

_PRICES = "# Prices\n\nA pump costs ninety euros. A hose costs twelve euros.\n"


def _make_passage(document_id: str, text: str, page: int | None = None) -> Passage:
    chunk = StoredChunk(document_id, f"{document_id}.pdf", page or 0, text, page, None)
    return Passage(chunk, 0.5, text)


_HOURS = _make_passage("doc_hours", "The shop opens\nat Nine.", 1)
_SUNDAYS = _make_passage("doc_hours", "On Sundays at eleven.", 2)
_PUMPS = _make_passage("doc_pumps", "A pump costs ninety euros.")


def _find(*passages: Passage, quoted: int) -> Findings:
    return Findings(list(passages), list(passages[:quoted]), 4.0)


async def _evaluate(librarian: Librarian, *questions: Any, **more: Any) -> dict[str, Any]:
    body = {"questions": questions, **more}
    answer = await librarian.client.post(f"{librarian.path}/evaluations/retrieval", body)
    assert answer.status_code == 200, answer.text
    evaluation: dict[str, Any] = answer.json()
    return evaluation


def _ask(question: str, *expected: dict[str, Any]) -> dict[str, Any]:
    return {"question": question, "expected": expected}


# Judging


@pytest.mark.parametrize(
    ("target", "rank"),
    [
        (Target("doc_hours"), 2),
        (Target("doc_hours", page=2), 3),
        (Target("doc_hours", evaluation_scores.fold("opens  at NINE")), 2),
        (Target("doc_hours", "on sundays", page=1), None),
        (Target("doc_other"), None),
    ],
)
def test_a_passage_is_right_with_its_document_page_and_text(
    target: Target, rank: int | None
) -> None:
    judgement = judge([target], _find(_PUMPS, _HOURS, _SUNDAYS, quoted=3))
    assert (judgement.result.rank, judgement.result.is_right) == (rank, rank is not None)


def test_a_right_passage_that_no_turn_quotes_has_a_rank_but_is_not_right() -> None:
    result = judge([Target("doc_hours")], _find(_PUMPS, _HOURS, quoted=1)).result
    assert (result.rank, result.is_right, result.quoted_count) == (2, False, 1)
    shown = [(item.is_expected, item.is_quoted) for item in result.passages]
    assert shown == [(False, True), (True, False)]


def test_a_question_without_an_answer_is_right_when_nothing_is_quoted() -> None:
    assert judge([], _find(_PUMPS, quoted=0)).result.is_right
    assert not judge([], _find(_PUMPS, quoted=1)).result.is_right


_TARGETS = [Target("doc_hours")]
_FIRST = judge(_TARGETS, _find(_HOURS, quoted=1))
_SECOND = judge(_TARGETS, _find(_PUMPS, _HOURS, quoted=2))
_CUT_OFF = judge(_TARGETS, _find(_HOURS, quoted=0))
_NOT_FOUND = judge(_TARGETS, _find(_PUMPS, quoted=1))
_SILENT = judge([], _find(quoted=0))
_FALSE_ANSWER = judge([], _find(_PUMPS, quoted=1))


def test_figures_leave_questions_without_an_answer_out_of_the_rates() -> None:
    items = [_FIRST, _SECOND, _CUT_OFF, _NOT_FOUND, _SILENT, _FALSE_ANSWER]
    figures = evaluation_scores.summarize(items, [2, 1, 2])
    assert figures.hit_rate == {"1": 0.5, "2": 0.75}
    assert (figures.mrr, figures.quoted_rate) == (0.625, 0.5)
    assert (figures.missed_count, figures.false_answer_count) == (1, 1)
    assert figures.median_ms == 4.0
    nothing = evaluation_scores.summarize([_SILENT], [1])
    assert (nothing.hit_rate, nothing.mrr, nothing.quoted_rate) == (None, None, None)


@pytest.mark.parametrize(
    ("worse", "better"),
    [(_SECOND, _FIRST), (_NOT_FOUND, _SECOND), (_CUT_OFF, _SECOND), (_FALSE_ANSWER, _SILENT)],
)
def test_what_a_turn_quotes_decides_before_the_rank(worse: Judgement, better: Judgement) -> None:
    differences = evaluation_scores.compare([worse, better, better], [better, worse, better])
    assert (differences.better, differences.worse) == ([0], [1])


@pytest.mark.parametrize(
    ("plan", "questions", "changed", "units"),
    [
        ("pro", 1, False, 1),
        ("pro", 200, False, 20),
        ("pro", 200, True, 40),
        ("free", 200, True, 30),
    ],
)
def test_the_price_grows_with_the_searches_up_to_half_a_minute(
    plan: str, questions: int, units: int, *, changed: bool
) -> None:
    body = b'{"questions": [{"question": "When?", "expected": []}]}'
    evaluation = Evaluation(
        tenant_id="ten_a",
        request=decode(body, RetrievalEvaluationRequest),
        targets=[[]] * questions,
        bases=[None] * (1 + changed),
        plan=PLANS[plan],
    )
    assert evaluation.units == units


# Over HTTP


async def test_an_evaluation_compares_settings_and_changes_none(librarian: Librarian) -> None:
    hours, _ = await librarian.add(hours_md=HANDBOOK, prices_md=_PRICES)
    evaluation = await _evaluate(
        librarian,
        _ask("When does the shop open on Sundays?", {"document_name": "hours.md"}),
        _ask("How much is a pump?", {"document_name": "prices.md", "contains": "ninety EUROS"}),
        _ask("How long can goods be returned?", {"document_id": hours["id"], "page": 7}),
        _ask("Who won the football world cup?"),
        k=[1, 3],
        changed_settings={"max_passages": 1},
    )
    counts = ("answerable_count", "unanswerable_count", "skipped_count")
    assert [evaluation[name] for name in counts] == [3, 1, 0]
    for figures in (evaluation["current"], evaluation["changed"]):
        assert figures["hit_rate"] == {"1": 0.6667, "3": 0.6667}
        assert (figures["mrr"], figures["quoted_rate"]) == (0.6667, 0.6667)
        assert (figures["missed_count"], figures["false_answer_count"]) == (0, 0)
        assert figures["median_ms"] > 0
    assert evaluation["differences"] == {"better": [], "worse": []}
    sundays, pump, wrong_page, unanswerable = evaluation["questions"]
    assert sundays["current"]["passages"][0]["document_name"] == "hours.md"
    assert pump["changed"]["quoted_count"] == 1
    assert (wrong_page["current"]["rank"], wrong_page["current"]["is_right"]) == (None, False)
    assert (unanswerable["current"]["rank"], unanswerable["current"]["is_right"]) == (None, True)
    settings = (await librarian.client.get(f"{librarian.path}/retrieval")).json()
    assert settings["max_passages"] == 5


async def test_only_public_finds_what_a_visitor_is_answered_from(librarian: Librarian) -> None:
    [document] = await librarian.add(hours_md=HANDBOOK)
    question = _ask("When does the shop open on Sundays?", {"document_id": document["id"]})
    path = f"{librarian.path}/documents/{document['id']}"
    await librarian.client.http.patch(path, json={"visibility": "internal"})
    assert (await _evaluate(librarian, question))["current"]["missed_count"] == 0
    public = await _evaluate(librarian, question, only_public=True)
    assert (public["current"]["missed_count"], public["changed"]) == (1, None)
    assert public["questions"][0]["changed"] is None


async def test_expected_documents_must_exist(librarian: Librarian) -> None:
    [document] = await librarian.add(hours_md=HANDBOOK)
    expected = (
        {"contains": "eleven"},
        {"document_name": "prices.md"},
        {"document_id": "doc_unknown"},
        {"document_id": document["id"], "document_name": "prices.md"},
    )
    places = ("", ".document_name", ".document_id", ".document_name")
    for item, place in zip(expected, places, strict=True):
        body = {
            "questions": [_ask("When?"), _ask("How much?", {"document_name": "hours.md"}, item)]
        }
        answer = await librarian.client.post(f"{librarian.path}/evaluations/retrieval", body)
        error = refused(answer, 422, "validation_error")
        assert list(error["details"]) == [f"questions.1.expected.1{place}"]


async def test_an_agent_without_documents_answers_nothing(librarian: Librarian) -> None:
    evaluation = await _evaluate(librarian, _ask("When?"), changed_settings={})
    for figures in (evaluation["current"], evaluation["changed"]):
        assert (figures["hit_rate"], figures["false_answer_count"]) == (None, 0)


async def test_a_tenant_has_one_evaluation_at_a_time_and_pays_for_it(
    librarian: Librarian, services: Services
) -> None:
    path, body = f"{librarian.path}/evaluations/retrieval", {"questions": [_ask("When?")] * 30}
    async with services.get(EvaluationLimit).hold(librarian.client.tenant_id):
        answer = await librarian.client.post(path, body)
        refused(answer, 429, "rate_limited")
    before, after = [
        int((await librarian.client.post(path, body)).headers["x-ratelimit-remaining"])
        for _ in range(2)
    ]
    # The request itself, and 60 searches.
    assert before - after == 2 + 3


async def test_a_super_admin_pays_and_not_the_tenant_whose_agent_it_is(
    librarian: Librarian, world: World
) -> None:
    super_admin = await world.user("super_admin")
    change = {"limits": {"requests_per_minute": 20, "burst_multiplier": 1}}
    await super_admin.put(f"/api/v1/tenants/{super_admin.tenant_id}", change)
    path, body = f"{librarian.path}/evaluations/retrieval", {"questions": [_ask("When?")] * 200}
    headers = {"x-tenant-id": librarian.client.tenant_id}
    first = await super_admin.post(path, body, headers=headers)
    # The change, twice the request, and half of the minute each time.
    answer = await super_admin.post(path, body, headers=headers)
    assert first.status_code == 200
    assert refused(answer, 429, "rate_limited")["details"]["limit"] == 20
    assert (await librarian.client.post(path, body)).status_code == 200


async def test_an_evaluation_that_takes_too_long_tells_what_it_did_not_reach(
    librarian: Librarian, monkeypatch: pytest.MonkeyPatch
) -> None:
    await librarian.add(hours_md=HANDBOOK)
    search = retrieval.search

    async def search_or_hang(*args: Any, **options: Any) -> Any:
        if "for ever" in args[3]:
            await asyncio.Event().wait()
        return await search(*args, **options)

    monkeypatch.setattr(retrieval, "search", search_or_hang)
    monkeypatch.setattr(evaluations, "_MAX_SECONDS", 0.5)
    quick, slow = _ask("When?", {"document_name": "hours.md"}), _ask("Wait for ever")
    evaluation = await _evaluate(librarian, quick, slow, quick)
    assert (evaluation["answerable_count"], evaluation["skipped_count"]) == (1, 2)
    answer = await librarian.client.post(
        f"{librarian.path}/evaluations/retrieval", {"questions": [slow]}
    )
    refused(answer, 503, "unavailable")
