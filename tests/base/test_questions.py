"""Questions that may never be answered are waited for no longer than was said, and not twice."""

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest
from testkit.waiting import wait_until

from cliffwatch.base.clock import SystemClock
from cliffwatch.base.questions import LIMIT, LIMIT_EACH, Questions, SharedAnswer, Unanswered

PATIENCE_SECONDS = 0.2


@pytest.fixture
def answer() -> Iterator[threading.Event]:
    """Until it is set, what waits for it is silent."""
    event = threading.Event()
    yield event
    event.set()


def test_an_answer_is_passed_on_and_so_is_an_error() -> None:
    questions = Questions(SystemClock(), PATIENCE_SECONDS)
    assert questions.ask("a drive", lambda: 7) == 7
    with pytest.raises(ZeroDivisionError):
        questions.ask("a drive", lambda: 1 // 0)


def test_an_unanswered_question_is_not_repeated_until_it_is_answered(answer: threading.Event) -> None:
    questions, asked = Questions(SystemClock(), PATIENCE_SECONDS), []

    def act() -> bool:
        asked.append(True)
        return answer.wait()

    with pytest.raises(Unanswered, match="a drive has not answered for 0 s"):
        questions.ask("a drive", act)
    for _ in range(2 * LIMIT):
        with pytest.raises(Unanswered, match="a drive has not answered"):
            questions.ask("a drive", act)
    assert len(asked) == 1
    assert questions.ask("another", lambda: 7) == 7
    answer.set()
    wait_until(lambda: _is_answered(questions), "the answer to the abandoned question")


def test_concurrent_identical_questions_run_in_turns_up_to_the_limit(answer: threading.Event) -> None:
    questions = Questions(SystemClock(), 30.0)
    with ThreadPoolExecutor(5 * LIMIT_EACH) as askers:
        asked = [askers.submit(questions.ask, "a drive", partial(_looked, answer)) for _ in range(5 * LIMIT_EACH)]
        wait_until(lambda: _questions_open() == LIMIT_EACH, "the first questions")
        answer.set()
        assert [each.result() for each in asked] == [True] * len(asked)
    assert _questions_open() == 0


def _looked(answer: threading.Event) -> bool:
    return answer.wait()


def _questions_open() -> int:
    return sum(thread.name == "question to a drive" for thread in threading.enumerate())


def _is_answered(questions: Questions) -> bool:
    try:
        return questions.ask("a drive", lambda: True)
    except Unanswered:
        return False


def test_no_more_wait_at_once_than_that(answer: threading.Event) -> None:
    questions = Questions(SystemClock(), 0.01)
    for number in range(LIMIT):
        with pytest.raises(Unanswered):
            questions.ask(f"drive {number}", answer.wait)
    before = threading.active_count()
    with pytest.raises(Unanswered, match="yet another was not asked"):
        questions.ask("yet another", answer.wait)
    assert threading.active_count() == before


def test_concurrent_callers_of_a_shared_answer_share_one_computation() -> None:
    begun: list[int] = []
    found: list[int] = []

    def find_out() -> int:
        wait_until(lambda: len(begun) == 8, "all are about to ask")
        time.sleep(0.5)
        found.append(len(found))
        if len(found) == 2:
            raise ValueError("the second fails")
        return found[-1]

    shared = SharedAnswer(find_out)

    def ask() -> int:
        begun.append(1)
        return shared.ask()

    with ThreadPoolExecutor(8) as threads:
        assert {each.result() for each in [threads.submit(ask) for _ in range(8)]} == {0}
        begun.clear()
        assert {type(each.exception()) for each in [threads.submit(ask) for _ in range(8)]} == {ValueError}
    assert found == [0, 1]
    assert shared.ask() == 2
