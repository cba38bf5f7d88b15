-- History by day: `runs` and `attempts` become partitioned by the UTC day of `scheduled_for`, so that a day that nobody keeps any
-- longer is dropped whole. What is there becomes the first partition, up to the coming midnight; days after that are made ahead
-- by the daemon (store/history-days.ts), and what has no day of its own, as a run in the far future, stands in the default partition.
-- The tables are read through once, to see that they fit. Version N-1 works on unchanged.
CREATE TABLE "history" (
	"one" boolean PRIMARY KEY DEFAULT true NOT NULL,
	"dropped_before" timestamp (3) with time zone NOT NULL,
	CONSTRAINT "history_one_row" CHECK ("history"."one")
);--> statement-breakpoint
CREATE INDEX "run_keys_of_run" ON "run_keys" ("run_id");--> statement-breakpoint
ALTER TABLE "runs" RENAME TO "runs_before_days";--> statement-breakpoint
ALTER TABLE "runs_before_days" RENAME CONSTRAINT "runs_scheduled_for_id_pk" TO "runs_before_days_pk";--> statement-breakpoint
ALTER INDEX "runs_one_per_fire" RENAME TO "runs_before_days_one_per_fire";--> statement-breakpoint
ALTER INDEX "runs_unplanned" RENAME TO "runs_before_days_unplanned";--> statement-breakpoint
ALTER INDEX "runs_guarded" RENAME TO "runs_before_days_guarded";--> statement-breakpoint
ALTER INDEX "runs_coalesced" RENAME TO "runs_before_days_coalesced";--> statement-breakpoint
ALTER INDEX "runs_unclaimed" RENAME TO "runs_before_days_unclaimed";--> statement-breakpoint
ALTER INDEX "runs_claimed" RENAME TO "runs_before_days_claimed";--> statement-breakpoint
ALTER INDEX "runs_running" RENAME TO "runs_before_days_running";--> statement-breakpoint
ALTER INDEX "runs_waiting_for_others" RENAME TO "runs_before_days_waiting_for_others";--> statement-breakpoint
CREATE TABLE "runs" (LIKE "runs_before_days" INCLUDING DEFAULTS INCLUDING CONSTRAINTS) PARTITION BY RANGE ("scheduled_for");--> statement-breakpoint
ALTER TABLE "runs" ADD CONSTRAINT "runs_scheduled_for_id_pk" PRIMARY KEY ("scheduled_for", "id");--> statement-breakpoint
CREATE UNIQUE INDEX "runs_one_per_fire" ON "runs" ("schedule_uid", "scheduled_for") WHERE trigger IN ('schedule', 'catchUp', 'backfill');--> statement-breakpoint
CREATE INDEX "runs_unplanned" ON "runs" ("schedule_uid", "scheduled_for", "id") WHERE trigger NOT IN ('schedule', 'catchUp', 'backfill');--> statement-breakpoint
CREATE INDEX "runs_guarded" ON "runs" ("schedule_uid") WHERE overlap_guarded AND status IN ('waiting', 'pending', 'running');--> statement-breakpoint
CREATE INDEX "runs_coalesced" ON "runs" ("schedule_uid", "scheduled_for") WHERE coalesced > 0;--> statement-breakpoint
CREATE INDEX "runs_unclaimed" ON "runs" ("lane", "priority", "due_at") WHERE status = 'pending' AND claimed_by IS NULL;--> statement-breakpoint
CREATE INDEX "runs_claimed" ON "runs" ("claimed_by") WHERE status = 'pending' AND claimed_by IS NOT NULL;--> statement-breakpoint
CREATE INDEX "runs_running" ON "runs" ("expires_at") WHERE status = 'running';--> statement-breakpoint
CREATE INDEX "runs_waiting_for_others" ON "runs" ("failed_dependency") WHERE status = 'waiting' AND open_dependencies IS NOT NULL;--> statement-breakpoint
CREATE INDEX "runs_open" ON "runs" ("scheduled_for") WHERE status IN ('waiting', 'pending', 'running');--> statement-breakpoint
CREATE TABLE "runs_other" PARTITION OF "runs" DEFAULT WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 50000, autovacuum_vacuum_insert_scale_factor = 0, autovacuum_vacuum_insert_threshold = 200000, autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 50000, autovacuum_vacuum_cost_delay = 0);--> statement-breakpoint
ALTER TABLE "attempts" RENAME TO "attempts_before_days";--> statement-breakpoint
ALTER TABLE "attempts_before_days" RENAME CONSTRAINT "attempts_scheduled_for_run_id_attempt_pk" TO "attempts_before_days_pk";--> statement-breakpoint
CREATE TABLE "attempts" (LIKE "attempts_before_days" INCLUDING DEFAULTS INCLUDING CONSTRAINTS) PARTITION BY RANGE ("scheduled_for");--> statement-breakpoint
ALTER TABLE "attempts" ADD CONSTRAINT "attempts_scheduled_for_run_id_attempt_pk" PRIMARY KEY ("scheduled_for", "run_id", "attempt");--> statement-breakpoint
CREATE TABLE "attempts_other" PARTITION OF "attempts" DEFAULT;--> statement-breakpoint
DO $$
DECLARE
  midnight timestamptz := (date_trunc('day', clock_timestamp() AT TIME ZONE 'UTC') + interval '1 day') AT TIME ZONE 'UTC';
BEGIN
  WITH later AS (DELETE FROM runs_before_days WHERE scheduled_for >= midnight RETURNING *) INSERT INTO runs_other SELECT * FROM later;
  WITH later AS (DELETE FROM attempts_before_days WHERE scheduled_for >= midnight RETURNING *) INSERT INTO attempts_other SELECT * FROM later;
  EXECUTE format('ALTER TABLE runs ATTACH PARTITION runs_before_days FOR VALUES FROM (MINVALUE) TO (%L)', midnight);
  EXECUTE format('ALTER TABLE attempts ATTACH PARTITION attempts_before_days FOR VALUES FROM (MINVALUE) TO (%L)', midnight);
END
$$;
