"""What fio says of operations that failed, as windows count it."""

import errno

from tests.engines.fio.conftest import START, MakeContext, MakeDocument

from cliffwatch.engines.fio.output import FioTranslator
from cliffwatch.model.window import EngineWindow

FAST = 100_000


def test_an_error_is_counted_once(context: MakeContext, document: MakeDocument) -> None:
    translator = FioTranslator(context())
    records = [
        record
        for at, error in ((1.1, 0), (2.1, 28), (3.1, 28))
        for record in translator.feed(document(at, at - 0.1, write={FAST: 1}, error=error), START + at)
    ]
    assert [window.counters["errors"] for window in records if isinstance(window, EngineWindow)] == [0, 1, 0]


def test_a_job_that_fio_itself_held_up_at_its_end_is_no_operation_that_failed(
    context: MakeContext, document: MakeDocument
) -> None:
    """fio ends a job with EDEADLK when it waited five seconds for a lock of fio's own statistics."""
    translator = FioTranslator(context())
    translator.feed(document(1.1, 1.0, write={FAST: 1}), START + 1.1)
    records = translator.feed(document(2.1, 2.0, write={FAST: 2}, error=errno.EDEADLK), START + 2.1)
    assert [window.counters["errors"] for window in records if isinstance(window, EngineWindow)] == [0]
