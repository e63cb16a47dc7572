"""`python -m cliffwatch.part`: one part of a run, which executes the commands on its stdin."""

import os
import sys

from cliffwatch.base.privacy import keep_private
from cliffwatch.part.inbox import CoordinatorGoneError, Inbox
from cliffwatch.part.lines import Order
from cliffwatch.part.outbox import VIRTUAL_LIMIT_BYTES, Outbox
from cliffwatch.part.serve import serve

#: Exit status when the coordinator is gone before it sent `Close`.
ABANDONED = 1


def main() -> int:
    keep_private()
    # Only the part's lines go to stdout; whatever a library prints goes to stderr.
    lines_out = os.dup(sys.stdout.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    inbox, outbox = Inbox(sys.stdin.fileno()), Outbox(lines_out)
    try:
        order = inbox.next()
        assert isinstance(order, Order), "it is the first of all commands"
        if order.virtual_start is not None:
            outbox.limit_bytes = VIRTUAL_LIMIT_BYTES
        serve(inbox, outbox, order)
    except CoordinatorGoneError:
        return ABANDONED
    outbox.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
