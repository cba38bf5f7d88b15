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
ALTER TABLE "effects" ALTER COLUMN "run_id" DROP NOT NULL;--> statement-breakpoint
ALTER TABLE "history" ADD COLUMN "outcome_watched" boolean DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE "runs" ADD COLUMN "outcome_watched" boolean DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE "schedules" ADD COLUMN "pause_until" timestamp (3) with time zone;--> statement-breakpoint
ALTER TABLE "schedules" ADD COLUMN "outcome_watched" boolean DEFAULT false NOT NULL;--> statement-breakpoint
CREATE INDEX "outcome_watches_to_look" ON "outcome_watches" USING btree ("look_at") WHERE look_at IS NOT NULL;--> statement-breakpoint
CREATE INDEX "outcome_watches_late" ON "outcome_watches" USING btree ("schedule_uid") WHERE late_since IS NOT NULL;--> statement-breakpoint
CREATE INDEX "history_watched_successes" ON "history" USING btree ("schedule_uid","finished_at") WHERE outcome_watched AND status = 'succeeded';--> statement-breakpoint
CREATE INDEX "history_watched_failures" ON "history" USING btree ("schedule_uid","finished_at") WHERE outcome_watched AND status IN ('failed', 'unknown', 'abandoned');--> statement-breakpoint
CREATE INDEX "schedules_pausing" ON "schedules" USING btree ("pause_until") WHERE pause_until IS NOT NULL;--> statement-breakpoint
-- A view can only grow at its end.
CREATE OR REPLACE VIEW "all_runs" AS SELECT "id", "scheduled_for", "schedule_uid", "schedule_version", "schedule_id", "trigger", "status", "lane", "priority", "due_at", "attempts", "failures", "recoveries", "coalesced", "coalesced_from", "claimed_by", "claimed_at", "first_claimed_at", "lost_at", "recovered_at", "lookup_after", "uncertain_attempt", "retried_after", "lookups", "handoff_started_at", "handed_off_at", "lateness_ms", "execution_id", "result_status_code", "result_body", "error", "own_payload", "key", "overlap_guarded", "parent_run_id", "open_dependencies", "on_dependency_failure", "has_dependents", "expires_at", "lease_seconds", "worker_id", "progress", "attempt_log", "created_at", "updated_at", NULL::text AS "reason", NULL::timestamp (3) with time zone AS "finished_at", "outcome_watched" FROM "runs"
UNION ALL SELECT "id", "scheduled_for", "schedule_uid", "schedule_version", "schedule_id", "trigger", "status", "lane", "priority", "due_at", "attempts", "failures", "recoveries", "coalesced", "coalesced_from", "claimed_by", "claimed_at", "first_claimed_at", "lost_at", "recovered_at", "lookup_after", "uncertain_attempt", "retried_after", "lookups", "handoff_started_at", "handed_off_at", "lateness_ms", "execution_id", "result_status_code", "result_body", "error", "own_payload", "key", "overlap_guarded", "parent_run_id", "open_dependencies", "on_dependency_failure", "has_dependents", "expires_at", "lease_seconds", "worker_id", "progress", "attempt_log", "created_at", "updated_at", "reason", "finished_at", "outcome_watched" FROM "history";
