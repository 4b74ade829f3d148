"""Judges the search of an agent by questions whose right passages are known.

The order of passages is judged as the search returns it, and the cut-off by what a turn would
quote. Each question is asked of the agent's settings and of the changed ones one after the other,
so that both have the same index and the same load.
"""

import asyncio
import math
import time
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final

import msgspec

from app.domain.agents.definition import api as agents
from app.domain.agents.definition.api import KnowledgeInfo
from app.kit.concurrency import ConcurrencyLimit
from app.kit.errors import Invalid, Problem, RateLimited, Unavailable
from app.kit.unknown_fields import join_path
from app.security.plans import Plan
from app.security.principal import Principal
from app.services import Services

from . import evaluation_queries, evaluation_scores, retrieval
from .evaluation_schemas import (
    EvaluationQuestion,
    ExpectedPassage,
    QuestionOutcome,
    RetrievalEvaluation,
    RetrievalEvaluationRequest,
)
from .evaluation_scores import Findings, Judgement, Target

_MAX_SECONDS = 40.0
# Its order, and what passes the cut-off.
_SEARCHES_PER_QUESTION: Final = 2
_SEARCHES_PER_UNIT: Final = 20


class EvaluationLimit(ConcurrencyLimit):
    """A tenant has one evaluation at a time. Those of several tenants take turns, a question each,
    so that turns of agents hardly wait for them. One per process.
    """

    def __init__(self) -> None:
        super().__init__(1)
        self.turn = asyncio.Lock()

    def build_refusal(self, max_requests: int) -> RateLimited:
        del max_requests
        return RateLimited(
            "Another evaluation is running. Try again when it has ended, which takes less than a "
            "minute",
            headers={"Retry-After": "5"},
        )


class Evaluation(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked of which knowledge bases: that of today, and that with changed settings. An
    agent without documents has none.
    """

    tenant_id: str
    request: RetrievalEvaluationRequest
    targets: list[list[Target]]
    bases: list[KnowledgeInfo | None]
    # Of the caller, who pays.
    plan: Plan

    @property
    def units(self) -> int:
        """What it costs beyond its request: at most half of what the plan allows in a minute."""
        searches = len(self.targets) * len(self.bases) * _SEARCHES_PER_QUESTION
        most = max(1, self.plan.requests_per_minute // 2)
        return min(most, math.ceil(searches / _SEARCHES_PER_UNIT))


async def prepare(
    services: Services, principal: Principal, agent_id: str, request: RetrievalEvaluationRequest
) -> Evaluation:
    """Raises AgentNotFound, and Invalid for expected documents that do not exist."""
    Invalid.check(_list_nameless(request.questions))
    request.choose_reader()
    expected = [item for question in request.questions for item in question.expected]
    ids = [item.document_id for item in expected if item.document_id is not None]
    names = [item.document_name for item in expected if item.document_name is not None]
    async with services.db.tx(principal.scope, autocommit=True) as tx:
        runtime = await agents.find_runtime(tx, services.keyring, agent_id)
        owner = runtime.tenant_id
        rows = await evaluation_queries.list_expected(tx, owner, agent_id, ids, names)
        plan = await evaluation_queries.find_plan(tx, principal.tenant_id)
    documents = {row["id"]: str(row["name"]) for row in rows}
    Invalid.check(_list_unknown(request.questions, documents))
    bases = [runtime.knowledge]
    if request.changed_settings is not None:
        bases.append(_change_settings(runtime.knowledge, request))
    targets = [_find_targets(question, documents) for question in request.questions]
    return Evaluation(tenant_id=owner, request=request, targets=targets, bases=bases, plan=plan)


def _change_settings(
    base: KnowledgeInfo | None, request: RetrievalEvaluationRequest
) -> KnowledgeInfo | None:
    settings = request.changed_settings
    if base is None or settings is None:
        return None
    return msgspec.structs.replace(base, settings=settings)


# What is expected


def _list_expected(
    questions: Sequence[EvaluationQuestion],
) -> Iterator[tuple[str, ExpectedPassage]]:
    """Yields each with its path in the request."""
    for place, question in enumerate(questions):
        for number, expected in enumerate(question.expected):
            yield f"questions.{place}.expected.{number}", expected


def _list_nameless(questions: Sequence[EvaluationQuestion]) -> Iterator[Problem]:
    for path, expected in _list_expected(questions):
        if expected.document_id is None and expected.document_name is None:
            yield path, "must name a document by document_id or document_name"


def _list_unknown(
    questions: Sequence[EvaluationQuestion], documents: dict[str, str]
) -> Iterator[Problem]:
    names = set(documents.values())
    for path, expected in _list_expected(questions):
        document_id, name = expected.document_id, expected.document_name
        if document_id is not None and document_id not in documents:
            yield join_path(path, "document_id"), "the agent has no document with this id"
        elif name is not None and name not in names:
            yield join_path(path, "document_name"), "the agent has no document with this name"
        elif name is not None and document_id is not None and documents[document_id] != name:
            yield join_path(path, "document_name"), "is not the name of the document with this id"


def _find_targets(question: EvaluationQuestion, documents: dict[str, str]) -> list[Target]:
    ids = {name: document_id for document_id, name in documents.items()}
    return [
        Target(
            expected.document_id or ids[expected.document_name or ""],
            evaluation_scores.fold(expected.contains or ""),
            expected.page,
        )
        for expected in question.expected
    ]


# Asking


async def run(services: Services, evaluation: Evaluation) -> RetrievalEvaluation:
    """To be called while the tenant holds the EvaluationLimit, and no transaction is open. When the
    time is over, the first questions are answered. Raises Unavailable, also when there are none.
    """
    judgements: list[list[Judgement]] = []
    turn = services.get(EvaluationLimit).turn
    try:
        async with asyncio.timeout(_MAX_SECONDS):
            for place in range(len(evaluation.targets)):
                async with turn:
                    judgements.append(await _ask(services, evaluation, place))
    except TimeoutError as error:
        if not judgements:
            raise Unavailable("The searches take too long at the moment", 5) from error
    return _build_answer(evaluation, judgements)


async def _ask(services: Services, evaluation: Evaluation, place: int) -> list[Judgement]:
    """Returns the results of a question, one for each base."""
    targets = evaluation.targets[place]
    question = evaluation.request.questions[place].question
    return [
        evaluation_scores.judge(targets, await _search(services, evaluation, base, question))
        for base in evaluation.bases
    ]


async def _search(
    services: Services, evaluation: Evaluation, base: KnowledgeInfo | None, question: str
) -> Findings:
    """Searches twice: for the order of passages, and for what a turn quotes."""
    if base is None:
        return Findings([], [], 0.0)
    search = partial(
        retrieval.search,
        services,
        evaluation.tenant_id,
        base,
        question,
        reader=evaluation.request.choose_reader(),
    )
    started = time.perf_counter()
    passages, quotations = await asyncio.gather(
        search(max(evaluation.request.k)),
        search(base.settings.max_passages, only_fitting=True),
    )
    milliseconds = (time.perf_counter() - started) * 1000
    return Findings(passages, quotations, milliseconds)


def _build_answer(evaluation: Evaluation, judgements: list[list[Judgement]]) -> RetrievalEvaluation:
    request = evaluation.request
    # By setting instead of by question.
    current, *changed = (list(column) for column in zip(*judgements, strict=True))
    figures = [evaluation_scores.summarize(column, request.k) for column in (current, *changed)]
    answerable_count = sum(item.is_answerable for item in current)
    return RetrievalEvaluation(
        answerable_count=answerable_count,
        unanswerable_count=len(current) - answerable_count,
        skipped_count=len(request.questions) - len(current),
        current=figures[0],
        changed=figures[1] if changed else None,
        differences=evaluation_scores.compare(current, changed[0]) if changed else None,
        questions=[
            QuestionOutcome(question.question, row[0].result, row[1].result if changed else None)
            for question, row in zip(request.questions, judgements, strict=False)
        ],
    )
