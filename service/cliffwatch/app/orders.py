"""Read the request that a run was made from, in its journal (order.json)."""

from pydantic import ValidationError

from cliffwatch.base.errors import Code, Problem
from cliffwatch.base.faults import faults_of
from cliffwatch.journal import JournalReader, files
from cliffwatch.model.order import RunOrder


def read_order(reader: JournalReader) -> RunOrder:
    """Read the run request in a journal's order.json. Raises Problem(journal_unreadable)."""
    path = reader.directory / files.ORDER
    try:
        order = RunOrder.model_validate(reader.document(files.ORDER))
    except ValidationError as error:
        found = "; ".join(f"{fault.field}: {fault.message}" for fault in faults_of(error)[:3])
        raise Problem(Code.JOURNAL_UNREADABLE, f"{path} does not hold an order: {found}") from error
    if order.run_id != reader.directory.name:
        raise Problem(Code.JOURNAL_UNREADABLE, f"{path} belongs to another run, {order.run_id}")
    return order
