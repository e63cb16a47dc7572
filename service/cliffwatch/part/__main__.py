"""`python -m cliffwatch.part`: one part of a run, which executes the commands on its stdin."""

import os
import sys

from cliffwatch.base.privacy import keep_private
from cliffwatch.part.inbox import BadCommandError, CoordinatorGoneError, Inbox
from cliffwatch.part.lines import Order
from cliffwatch.part.outbox import VIRTUAL_LIMIT_BYTES, Outbox
from cliffwatch.part.serve import serve

#: Exit status when the coordinator is gone before it sent `Close`.
ABANDONED = 1
#: Exit status when a line was no command.
NOT_UNDERSTOOD = 2


def main() -> int:
    keep_private()
    # Only the part's lines go to stdout; whatever a library prints goes to stderr.
    lines_out = os.dup(sys.stdout.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    inbox, outbox = Inbox(sys.stdin.fileno()), Outbox(lines_out)
    try:
        order = inbox.next()
        if not isinstance(order, Order):
            raise BadCommandError(f"the first command has to be an order, and is a {order.type}")
        if order.virtual_start is not None:
            outbox.limit_bytes = VIRTUAL_LIMIT_BYTES
        serve(inbox, outbox, order)
    except BadCommandError as error:
        print(error, file=sys.stderr)
        return NOT_UNDERSTOOD
    except CoordinatorGoneError:
        return ABANDONED
    outbox.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
