"""Execute the commands of a coordinator, one after the other."""

from cliffwatch.base.errors import Problem
from cliffwatch.part.context import Commands, Lines, PartContext, own_cost
from cliffwatch.part.inbox import BadCommandError
from cliffwatch.part.lines import (
    Answer,
    Clear,
    Cleared,
    Close,
    Closed,
    Command,
    Flush,
    Load,
    Order,
    Prepare,
    Refused,
    record_line,
)
from cliffwatch.part.load import PartLoad
from cliffwatch.part.prepare import clear, flush, prepare
from cliffwatch.part.target import PartTarget, claimed


def serve(inbox: Commands, lines: Lines, order: Order) -> None:
    """Claim the target of `order` and execute commands until `Close`. Raises CoordinatorGoneError."""
    try:
        context = PartContext(order, inbox, lines)
        with claimed(context) as target:
            lines.put(record_line(target.answer()))
            while not isinstance(command := inbox.next(), Close):
                lines.put(record_line(_answer(context, target, command)))
    except Problem as problem:
        lines.put(record_line(Refused(code=problem.code, message=str(problem))))
        while not isinstance(inbox.next(), Close):
            pass
    cpu_seconds, max_resident_bytes = own_cost()
    lines.put(record_line(Closed(cpu_seconds=cpu_seconds, max_resident_bytes=max_resident_bytes)))


def _answer(context: PartContext, target: PartTarget, command: Command) -> Answer:
    try:
        if isinstance(command, Prepare):
            return prepare(context, target, command)
        if isinstance(command, Load):
            return PartLoad(context, target, command).execute()
        if isinstance(command, Flush):
            return flush(context, target, command)
        if not isinstance(command, Clear):
            raise BadCommandError(f"a command of a part that holds its target cannot be {command.type}")
        clear(context, target)
        return Cleared()
    except Problem as problem:
        return Refused(code=problem.code, message=str(problem))
