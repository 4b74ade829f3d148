"""How many of the passages that a turn quotes are of the right document, and how often questions
without an answer get none. The cut-off was chosen by these numbers: with a higher one, precision
grows, and passages with the answer are lost.
"""

from pathlib import Path

import pytest

from tests.agents.knowledge.evaluation import Corpus, quote, read_questions

# About other things, and about what the documents could say, but do not.
UNANSWERED = (
    *("hello", "thanks!", "ok", "bye", "Recommend a film", "Who wrote Hamlet?"),
    *("What is the capital of Mongolia?", "Who won the football world cup?"),
    *("How tall is Mount Everest?", "What is quantum entanglement?"),
    *("What is the weather like tomorrow?", "Who is the president of Brazil?"),
    *("How do I bake a chocolate cake for a birthday?", "Tell me a joke about cats"),
    *("Can you translate this sentence into French?", "How do vaccines work?"),
    *("What is the best programming language to learn first?", "Do you sell running shoes?"),
    *("How do I change the tyre of my bicycle?", "Which vitamins are in spinach?"),
    *("What time is it in Tokyo right now?", "What are the rules of chess?"),
    *("Write a poem about the sea", "How many planets are in the solar system?"),
    *("What should I plant in my garden in spring?", "Who painted the Mona Lisa?"),
    *("What does the stock of Apple cost today?", "How do I reset my Netflix password?"),
    *("What is the difference between a virus and a bacterium?", "Can I pay with Bitcoin?"),
    *("When was the Eiffel Tower built?", "Is there a swimming pool on the site?"),
    *("Do you offer student discounts on your pumps?", "Does the AX-210 come in red?"),
    *("What is the name of the CEO's wife?", "What is your position on nuclear energy?"),
    *("Which bank does the company use for its pension fund?",),
    *("How many stars does the canteen have on Google?",),
)


@pytest.fixture(scope="module")
async def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    corpus = Corpus(Path(tmp_path_factory.mktemp("corpus")))
    await corpus.load()
    return corpus


@pytest.mark.parametrize(("hard", "precision", "recall"), [(False, 0.8, 0.9), (True, 0.73, 0.83)])
async def test_most_quoted_passages_are_of_the_right_document(
    corpus: Corpus, precision: float, recall: float, *, hard: bool
) -> None:
    outcomes = await corpus.ask(read_questions(hard=hard))
    names = [
        [
            candidate.chunk.document_name == item.question.document
            for candidate in quote(item.matches, item.question.query)
        ]
        for item in outcomes
    ]
    quoted = [is_right for found in names for is_right in found]
    assert sum(quoted) / len(quoted) >= precision
    hits = sum(
        any(
            item.question.phrase in candidate.chunk.text
            for candidate in quote(item.matches, item.question.query)
        )
        for item in outcomes
    )
    assert hits / len(outcomes) >= recall


async def test_questions_without_an_answer_mostly_get_no_passages(corpus: Corpus) -> None:
    quoted = [quote(await corpus.search(query), query) for query in UNANSWERED]
    assert sum(not found for found in quoted) >= 0.6 * len(UNANSWERED)
