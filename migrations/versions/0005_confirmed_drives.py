"""What the drive of a schedule was made of when its erasure was confirmed."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("schedules", sa.Column("target_blocks", sa.String(), nullable=True))


def downgrade() -> None:
    # In place, which SQLite can from 3.35 on: a table made anew would take the firings with it.
    op.drop_column("schedules", "target_blocks")
