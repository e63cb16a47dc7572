"""A finished run's figures and the curve of its latency, and runs by verdict."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("runs", sa.Column("figures", sa.Text(), nullable=True))
    op.add_column("runs", sa.Column("curve", sa.Text(), nullable=True))
    op.create_index("ix_runs_verdict_created_at_id", "runs", ["verdict", "created_at", "id"])


def downgrade() -> None:
    op.drop_index("ix_runs_verdict_created_at_id", "runs")
    # In place, which SQLite can from 3.35 on: a table made anew would take the findings with it.
    op.drop_column("runs", "curve")
    op.drop_column("runs", "figures")
