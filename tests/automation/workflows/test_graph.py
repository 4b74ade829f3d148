"""Which nodes come next, without a database: tables of cases, and properties of random graphs."""

import random
from collections.abc import Iterable
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.domain.automation.workflows.definitions import Definition, Edge, Node
from app.domain.automation.workflows.graph import Graph, NodeState, Progress, find_problems
from tests.lengths import rounds

BRANCHES = [None, True, False]


def build(text: str) -> Graph:
    """Builds a graph from `a>b a>c:true d`: edges with their branches, and single nodes."""
    names: dict[str, None] = {}
    edges = []
    for part in text.split():
        path, _, when = part.partition(":")
        source, _, target = path.partition(">")
        names |= dict.fromkeys([source, target] if target else [source])
        if target:
            edges.append(Edge(source, target, when == "true" if when else None))
    return Graph(Definition([_node(name) for name in names], edges))


def _node(name: str) -> Node:
    return Node(id=name, type="transform")


def progress_of(graph: Graph, text: str) -> dict[str, NodeState]:
    """`a b:false c=running`: completed nodes with their branches, others by their status."""
    progress = graph.start()
    for part in text.split():
        name, _, status = part.partition("=")
        name, _, branch = name.partition(":")
        taken = branch == "true" if branch else None
        progress[name] = NodeState(status or "completed", taken)
    return progress


ADVANCES = {
    "the first nodes are ready": ("a>b c", "", "a c", ""),
    "the next of a chain": ("a>b b>c", "a", "b", ""),
    "nothing while a node runs": ("a>b", "a=running", "", ""),
    "nothing while a node waits": ("a>b", "a=waiting", "", ""),
    "nothing after a failed node": ("a>b", "a=failed", "", ""),
    "a queued node is not ready again": ("a>b a>c", "a b=queued", "c", ""),
    "a join waits for all before it": ("a>c b>c", "a", "b", ""),
    "a join after the last one": ("a>c b>c", "a b", "c", ""),
    "the branch that is taken": ("a>b:true a>c:false", "a:true", "b", "c"),
    "the other branch": ("a>b:true a>c:false", "a:false", "c", "b"),
    "an edge without a branch is taken in either case": ("a>b a>c:true", "a:false", "b", "c"),
    "a branch needs a result": ("a>b:true a>c:false", "a", "", "b c"),
    "all after a skipped node are skipped": ("a>b:true b>c c>d", "a:false", "", "b c d"),
    "a join of a taken and a skipped branch": (
        "a>b:true a>c:false b>d c>d",
        "a:true b",
        "d",
        "c",
    ),
    "a join waits although a branch is skipped": ("a>b:true b>d c>d", "a:false", "c", "b"),
    "two edges from one node": ("a>b:true a>b:false", "a:false", "b", ""),
    "a node with one taken edge of two": ("a>c:true b>c", "a:false b", "c", ""),
}


def test_a_node_is_ready_or_skipped_once_all_before_it_are_finished(
    subtests: pytest.Subtests,
) -> None:
    for name, (edges, state, ready, skipped) in ADVANCES.items():
        with subtests.test(name):
            graph = build(edges)
            advance = graph.advance(progress_of(graph, state))
            assert (sorted(advance.ready), sorted(advance.skipped)) == (
                ready.split(),
                skipped.split(),
            )


LAST = {
    "the end of a chain": ("a>b b>c", "a b c", "c"),
    "several ends": ("a>b a>c", "a b c", "b c"),
    "single nodes": ("a b", "a b", "a b"),
    "a condition whose only branch was not taken": ("a>b:true", "a:false b=skipped", "a"),
    "the taken branch": ("a>b:true a>c:false", "a:true b c=skipped", "b"),
    "a condition before a join that ran": (
        "a>b a>d b>c:true c>d",
        "a b:false c=skipped d",
        "d",
    ),
}


def test_the_last_nodes_are_those_with_no_completed_node_after_them(
    subtests: pytest.Subtests,
) -> None:
    for name, (edges, state, last) in LAST.items():
        with subtests.test(name):
            graph = build(edges)
            assert graph.list_last(progress_of(graph, state)) == last.split()


def test_all_nodes_on_a_path_to_a_node_are_before_it() -> None:
    graph = build("a>b b>c d>c c>e f")
    before = {name: "".join(sorted(graph.list_before(name))) for name in graph.nodes}
    assert before == {"a": "", "b": "a", "c": "abd", "d": "", "e": "abcd", "f": ""}


CYCLES = {
    "a>a": "a -> a",
    "a>b b>a": "a -> b -> a",
    "s>a a>b b>c c>a c>e": "a -> b -> c -> a",
    "a>b b>c x>y y>x": "x -> y -> x",
}


def _find(text: str) -> list[tuple[str, str]]:
    names, edges = set[str](), []
    for part in text.split():
        source, _, target = part.partition(">")
        names |= {source, target}
        edges.append(Edge(source, target))
    return list(find_problems([_node(name) for name in sorted(names)], edges))


def test_a_cycle_is_named_by_its_nodes(subtests: pytest.Subtests) -> None:
    for text, cycle in CYCLES.items():
        with subtests.test(text):
            assert _find(text) == [("edges", f"form a cycle: {cycle}")]
    assert _find("a>b a>c b>d c>d") == []


def test_dangling_and_repeated_edges_and_repeated_nodes_are_named() -> None:
    nodes = [_node("a"), _node("b"), _node("a")]
    edges = [Edge("a", "b"), Edge("a", "x"), Edge("y", "b", when=True), Edge("a", "b")]
    assert list(find_problems(nodes, edges)) == [
        ("nodes.2.id", "another node has the id a; ids must be unique"),
        ("edges.1.to", "there is no node x"),
        ("edges.2.from", "there is no node y"),
        ("edges.3", "repeats an earlier edge; remove it"),
    ]


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """A random graph without cycles: edges lead from earlier to later nodes."""
    names = [f"n{number}" for number in range(draw(st.integers(1, 9)))]
    pairs = [(a, b) for index, a in enumerate(names) for b in names[index + 1 :]]
    chosen = draw(st.lists(st.sampled_from(pairs), unique=True, max_size=14)) if pairs else []
    edges = [Edge(a, b, draw(st.sampled_from(BRANCHES))) for a, b in chosen]
    order = draw(st.permutations(names))
    return Graph(Definition([_node(name) for name in order], draw(st.permutations(edges))))


def _run(graph: Graph, branches: dict[str, bool], seed: int) -> dict[str, NodeState]:
    """Completes one ready node after another in a random order, until none is ready."""
    generator = random.Random(seed)
    progress, queued = graph.start(), set[str]()
    while True:
        ready, skipped = graph.advance(progress)
        progress |= dict.fromkeys(skipped, NodeState("skipped"))
        _check_ready(graph, progress, ready)
        progress |= dict.fromkeys(ready, NodeState("queued"))
        queued |= set(ready)
        if not queued:
            return progress
        name = generator.choice(sorted(queued))
        queued.discard(name)
        progress[name] = NodeState("completed", branches[name], 1)


def _check_ready(graph: Graph, progress: Progress, ready: Iterable[str]) -> None:
    for name in ready:
        before = {progress[edge.source].status for edge in graph.incoming[name]}
        assert before <= {"completed", "skipped"}


@settings(max_examples=rounds(40, 100))
@given(graphs(), st.randoms(use_true_random=False), st.integers(0, 9), st.integers(0, 9))
def test_all_nodes_end_alike_in_whatever_order_they_complete(
    graph: Graph, generator: random.Random, seed: int, other_seed: int
) -> None:
    branches = {name: generator.random() < 0.5 for name in graph.nodes}
    progress = _run(graph, branches, seed)
    assert {state.status for state in progress.values()} <= {"completed", "skipped"}
    assert progress == _run(graph, branches, other_seed)
    assert graph.list_last(progress)
    for name, state in progress.items():
        taken = [
            progress[edge.source].status == "completed"
            and edge.when in {None, branches[edge.source]}
            for edge in graph.incoming[name]
        ]
        assert (state.status == "completed") == (any(taken) or not taken)


@settings(max_examples=rounds(40, 100))
@given(graphs())
def test_the_order_puts_each_node_after_those_before_it(graph: Graph) -> None:
    position = {name: index for index, name in enumerate(graph.order)}
    assert position.keys() == graph.nodes.keys()
    for name in graph.nodes:
        assert all(position[other] < position[name] for other in graph.list_before(name))


@settings(max_examples=rounds(40, 100))
@given(graphs(), st.data())
def test_an_edge_back_makes_a_cycle_that_is_named(graph: Graph, data: st.DataObject) -> None:
    edges = [edge for outgoing in graph.outgoing.values() for edge in outgoing]
    nodes = list(graph.nodes.values())
    assert list(find_problems(nodes, edges)) == []
    target = data.draw(st.sampled_from(sorted(graph.nodes)))
    source = data.draw(st.sampled_from(sorted(graph.nodes)))
    is_cycle = target == source or target in graph.list_before(source)
    known = {(edge.source, edge.target) for edge in edges}
    if (source, target) in known:
        return
    problems = list(find_problems(nodes, [*edges, Edge(source, target)]))
    assert bool(problems) == is_cycle
    if is_cycle:
        cycle = problems[0][1].removeprefix("form a cycle: ").split(" -> ")
        steps = known | {(source, target)}
        assert cycle[0] == cycle[-1]
        assert all(step in steps for step in pairwise(cycle))
