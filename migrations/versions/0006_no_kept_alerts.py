"""Alerts that a journal cannot take are sent again by Alertmanager, and not kept here."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.drop_table("kept_alerts")


def downgrade() -> None:
    op.create_table(
        "kept_alerts",
        sa.Column("run_id", sa.String(), nullable=False),
        sa.Column("fingerprint", sa.String(), nullable=False),
        sa.Column("starts_at", sa.Float(precision=53), nullable=False),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("received_at", sa.Float(precision=53), nullable=False),
        sa.Column("event", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("run_id", "fingerprint", "starts_at", "status", name=op.f("pk_kept_alerts")),
    )
