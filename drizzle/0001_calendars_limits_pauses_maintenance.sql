CREATE TABLE "calendar_versions" (
	"calendar_id" text COLLATE "C" NOT NULL,
	"version" integer NOT NULL,
	"at" timestamp (3) with time zone NOT NULL,
	"dates" jsonb,
	CONSTRAINT "calendar_versions_calendar_id_version_pk" PRIMARY KEY("calendar_id","version")
);
--> statement-breakpoint
CREATE TABLE "calendars" (
	"id" text COLLATE "C" PRIMARY KEY NOT NULL,
	"description" text,
	"version" integer NOT NULL,
	"applied_version" integer NOT NULL,
	"updated_at" timestamp (3) with time zone NOT NULL
);
--> statement-breakpoint
CREATE TABLE "held_runs" (
	"run_id" uuid PRIMARY KEY NOT NULL
);
--> statement-breakpoint
CREATE TABLE "limits" (
	"id" text COLLATE "C" PRIMARY KEY NOT NULL,
	"description" text,
	"max_running" integer NOT NULL,
	"updated_at" timestamp (3) with time zone NOT NULL,
	CONSTRAINT "limits_max_running" CHECK (max_running BETWEEN 1 AND 10000)
);
--> statement-breakpoint
CREATE TABLE "maintenance" (
	"one" boolean PRIMARY KEY DEFAULT true NOT NULL,
	"since" timestamp (3) with time zone NOT NULL,
	"until" timestamp (3) with time zone,
	"reason" text,
	"dispatch" text NOT NULL,
	CONSTRAINT "maintenance_one_row" CHECK ("maintenance"."one")
);
--> statement-breakpoint
CREATE TABLE "outcome_watches" (
	"schedule_uid" uuid PRIMARY KEY NOT NULL,
	"pause_after_failures" integer,
	"failures_since" timestamp (3) with time zone NOT NULL,
	"success_within_seconds" integer,
	"success_since" timestamp (3) with time zone NOT NULL,
	"last_success_at" timestamp (3) with time zone,
	"look_at" timestamp (3) with time zone,
	"late_since" timestamp (3) with time zone
);
--> statement-breakpoint
CREATE TABLE "schedule_calendars" (
	"calendar_id" text COLLATE "C" NOT NULL,
	"schedule_uid" uuid NOT NULL,
	CONSTRAINT "schedule_calendars_calendar_id_schedule_uid_pk" PRIMARY KEY("calendar_id","schedule_uid")
);
--> statement-breakpoint
CREATE TABLE "skips" (
	"schedule_uid" uuid NOT NULL,
	"fire_at" timestamp (3) with time zone NOT NULL,
	"reason" text,
	"by" text,
	"asked_at" timestamp (3) with time zone NOT NULL,
	CONSTRAINT "skips_schedule_uid_fire_at_pk" PRIMARY KEY("schedule_uid","fire_at")
);
--> statement-breakpoint
ALTER TABLE "runs" DROP CONSTRAINT "runs_finite_claim";--> statement-breakpoint
DROP INDEX "runs_to_come";--> statement-breakpoint
ALTER TABLE "effects" ALTER COLUMN "run_id" DROP NOT NULL;--> statement-breakpoint
ALTER TABLE "history" ADD COLUMN "limit_id" text COLLATE "C";--> statement-breakpoint
ALTER TABLE "history" ADD COLUMN "admitted_at" timestamp (3) with time zone;--> statement-breakpoint
ALTER TABLE "history" ADD COLUMN "outcome_watched" boolean DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE "runs" ADD COLUMN "limit_id" text COLLATE "C";--> statement-breakpoint
ALTER TABLE "runs" ADD COLUMN "admitted_at" timestamp (3) with time zone;--> statement-breakpoint
ALTER TABLE "runs" ADD COLUMN "outcome_watched" boolean DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE "schedules" ADD COLUMN "pause_until" timestamp (3) with time zone;--> statement-breakpoint
ALTER TABLE "schedules" ADD COLUMN "outcome_watched" boolean DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE "schedules" ADD COLUMN "limit_id" text COLLATE "C";--> statement-breakpoint
ALTER TABLE "schedules" ADD COLUMN "has_skips" boolean DEFAULT false NOT NULL;--> statement-breakpoint
CREATE INDEX "calendars_unapplied" ON "calendars" USING btree ("id") WHERE applied_version < version;--> statement-breakpoint
CREATE INDEX "outcome_watches_to_look" ON "outcome_watches" USING btree ("look_at") WHERE look_at IS NOT NULL;--> statement-breakpoint
CREATE INDEX "outcome_watches_late" ON "outcome_watches" USING btree ("schedule_uid") WHERE late_since IS NOT NULL;--> statement-breakpoint
CREATE INDEX "history_watched_successes" ON "history" USING btree ("schedule_uid","finished_at") WHERE outcome_watched AND status = 'succeeded';--> statement-breakpoint
CREATE INDEX "history_watched_failures" ON "history" USING btree ("schedule_uid","finished_at") WHERE outcome_watched AND status IN ('failed', 'unknown', 'abandoned');--> statement-breakpoint
CREATE INDEX "runs_to_admit" ON "runs" USING btree ("limit_id","priority","due_at") WHERE status = 'pending' AND limit_id IS NOT NULL AND admitted_at IS NULL;--> statement-breakpoint
CREATE INDEX "runs_limited" ON "runs" USING btree ("limit_id","admitted_at") WHERE limit_id IS NOT NULL;--> statement-breakpoint
CREATE INDEX "schedule_versions_labels" ON "schedule_versions" USING gin ((definition->'labels') jsonb_path_ops) WITH (fastupdate=false) WHERE (definition->'labels') <> '{}'::jsonb;--> statement-breakpoint
CREATE INDEX "schedules_limited" ON "schedules" USING btree ("limit_id","id") WHERE limit_id IS NOT NULL;--> statement-breakpoint
CREATE INDEX "schedules_pausing" ON "schedules" USING btree ("pause_until") WHERE pause_until IS NOT NULL;--> statement-breakpoint
CREATE INDEX "runs_to_come" ON "runs" USING btree ("due_at") WHERE status = 'pending' AND claimed_by IS NULL AND NOT ready AND limit_id IS NULL;--> statement-breakpoint
ALTER TABLE "runs" ADD CONSTRAINT "runs_place" CHECK (CASE WHEN limit_id IS NULL THEN admitted_at IS NULL
      WHEN admitted_at IS NULL THEN NOT ready AND claimed_by IS NULL AND status <> 'running'
      ELSE ready AND status <> 'waiting' END);--> statement-breakpoint
ALTER TABLE "runs" ADD CONSTRAINT "runs_finite_claim" CHECK (isfinite(claimed_at) AND isfinite(handoff_started_at) AND isfinite(lookup_after) AND isfinite(admitted_at));
--> statement-breakpoint
DROP VIEW "all_runs";--> statement-breakpoint
CREATE VIEW "all_runs" AS SELECT "id", "scheduled_for", "schedule_uid", "schedule_version", "schedule_id", "trigger", "status", "lane", "priority", "due_at", "attempts", "failures", "recoveries", "coalesced", "coalesced_from", "claimed_by", "claimed_at", "first_claimed_at", "lost_at", "recovered_at", "lookup_after", "uncertain_attempt", "retried_after", "lookups", "handoff_started_at", "handed_off_at", "lateness_ms", "execution_id", "result_status_code", "result_body", "error", "own_payload", "key", "overlap_guarded", "parent_run_id", "open_dependencies", "on_dependency_failure", "has_dependents", "expires_at", "lease_seconds", "worker_id", "progress", "attempt_log", "created_at", "updated_at", NULL::text AS "reason", NULL::timestamp (3) with time zone AS "finished_at", "limit_id", "admitted_at", "outcome_watched" FROM "runs"
UNION ALL SELECT "id", "scheduled_for", "schedule_uid", "schedule_version", "schedule_id", "trigger", "status", "lane", "priority", "due_at", "attempts", "failures", "recoveries", "coalesced", "coalesced_from", "claimed_by", "claimed_at", "first_claimed_at", "lost_at", "recovered_at", "lookup_after", "uncertain_attempt", "retried_after", "lookups", "handoff_started_at", "handed_off_at", "lateness_ms", "execution_id", "result_status_code", "result_body", "error", "own_payload", "key", "overlap_guarded", "parent_run_id", "open_dependencies", "on_dependency_failure", "has_dependents", "expires_at", "lease_seconds", "worker_id", "progress", "attempt_log", "created_at", "updated_at", "reason", "finished_at", "limit_id", "admitted_at", "outcome_watched" FROM "history";
