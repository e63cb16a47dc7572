"""The first tables: the index over journals (runs, findings, workloads), schedules and tokens."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "runs",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("directory", sa.String(), nullable=False),
        sa.Column("workload_name", sa.String(), nullable=False),
        sa.Column("workload_version", sa.Integer(), nullable=True),
        sa.Column("engine", sa.String(), nullable=False),
        sa.Column("target", sa.String(), nullable=False),
        sa.Column("target_key", sa.String(), nullable=False),
        sa.Column("request_digest", sa.String(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("since", sa.Float(precision=53), nullable=False),
        sa.Column("phase", sa.String(), nullable=True),
        sa.Column("verdict", sa.String(), nullable=True),
        sa.Column("reasons", sa.Text(), nullable=False),
        sa.Column("stop_requested", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.Float(precision=53), nullable=False),
        sa.Column("started_at", sa.Float(precision=53), nullable=True),
        sa.Column("finished_at", sa.Float(precision=53), nullable=True),
        sa.Column("load_start", sa.Float(precision=53), nullable=True),
        sa.Column("load_stop", sa.Float(precision=53), nullable=True),
        sa.Column("planned_seconds", sa.Float(precision=53), nullable=False),
        sa.Column("schedule_id", sa.String(), nullable=True),
        sa.Column("created_by", sa.String(), nullable=False),
        sa.Column("windows", sa.Integer(), nullable=False),
        sa.Column("last_window_end", sa.Float(precision=53), nullable=True),
        sa.Column("events_offset_bytes", sa.BigInteger(), nullable=False),
        sa.Column("last_event_id", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_runs")),
    )
    op.create_index(op.f("ix_runs_created_at_id"), "runs", ["created_at", "id"])
    op.create_index(op.f("ix_runs_schedule_id"), "runs", ["schedule_id"])
    op.create_index(op.f("ix_runs_state_created_at_id"), "runs", ["state", "created_at", "id"])
    op.create_index(op.f("ix_runs_workload_name_created_at_id"), "runs", ["workload_name", "created_at", "id"])

    op.create_table(
        "schedules",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("request", sa.Text(), nullable=False),
        sa.Column("trigger", sa.Text(), nullable=False),
        sa.Column("enabled", sa.Boolean(), nullable=False),
        sa.Column("next_fire_at", sa.Float(precision=53), nullable=True),
        sa.Column("created_at", sa.Float(precision=53), nullable=False),
        sa.Column("created_by", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_schedules")),
        sa.UniqueConstraint("name", name=op.f("uq_schedules_name")),
    )
    op.create_table(
        "tokens",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("scope", sa.String(), nullable=False),
        sa.Column("hash", sa.String(), nullable=False),
        sa.Column("created_at", sa.Float(precision=53), nullable=False),
        sa.Column("revoked_at", sa.Float(precision=53), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_tokens")),
    )
    op.create_table(
        "workloads",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("document", sa.Text(), nullable=False),
        sa.Column("digest", sa.String(), nullable=False),
        sa.Column("created_at", sa.Float(precision=53), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_workloads")),
        sa.UniqueConstraint("name", "version", name=op.f("uq_workloads_name")),
    )
    op.create_table(
        "findings",
        sa.Column("run_id", sa.String(), nullable=False),
        sa.Column("event_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("at", sa.Float(precision=53), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("detail", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("fk_findings_run_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("run_id", "event_id", name=op.f("pk_findings")),
    )
    op.create_index(op.f("ix_findings_at_run_id_event_id"), "findings", ["at", "run_id", "event_id"])

    op.create_table(
        "schedule_firings",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("schedule_id", sa.String(), nullable=False),
        sa.Column("due_at", sa.Float(precision=53), nullable=False),
        sa.Column("outcome", sa.String(), nullable=False),
        sa.Column("run_id", sa.String(), nullable=True),
        sa.Column("detail", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(
            ["schedule_id"], ["schedules.id"], name=op.f("fk_schedule_firings_schedule_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_schedule_firings")),
        sa.UniqueConstraint("schedule_id", "due_at", name=op.f("uq_schedule_firings_schedule_id")),
    )


def downgrade() -> None:
    op.drop_table("schedule_firings")
    op.drop_index(op.f("ix_findings_at_run_id_event_id"), "findings")

    op.drop_table("findings")
    op.drop_table("workloads")
    op.drop_table("tokens")
    op.drop_table("schedules")
    op.drop_index(op.f("ix_runs_workload_name_created_at_id"), "runs")
    op.drop_index(op.f("ix_runs_state_created_at_id"), "runs")
    op.drop_index(op.f("ix_runs_schedule_id"), "runs")
    op.drop_index(op.f("ix_runs_created_at_id"), "runs")

    op.drop_table("runs")
