CREATE TABLE "effects" (
	"id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "effects_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"kind" text NOT NULL,
	"run_id" uuid NOT NULL,
	"schedule_uid" uuid NOT NULL,
	"schedule_version" integer NOT NULL,
	"schedule_id" text COLLATE "C" NOT NULL,
	"trigger" text NOT NULL,
	"status" text NOT NULL,
	"finished_at" timestamp (3) with time zone NOT NULL,
	"attempt" integer NOT NULL,
	"follower_uid" uuid,
	"failures" smallint DEFAULT 0 NOT NULL,
	"retry_at" timestamp (3) with time zone,
	"error" text
);
--> statement-breakpoint
CREATE TABLE "history" (
	"id" uuid NOT NULL,
	"scheduled_for" timestamp (3) with time zone NOT NULL,
	"schedule_uid" uuid NOT NULL,
	"schedule_version" integer NOT NULL,
	"schedule_id" text COLLATE "C" NOT NULL,
	"trigger" text NOT NULL,
	"status" text NOT NULL,
	"lane" text NOT NULL,
	"priority" smallint NOT NULL,
	"due_at" timestamp (3) with time zone NOT NULL,
	"attempts" integer NOT NULL,
	"failures" integer DEFAULT 0 NOT NULL,
	"recoveries" integer DEFAULT 0 NOT NULL,
	"coalesced" integer DEFAULT 0 NOT NULL,
	"coalesced_from" timestamp (3) with time zone,
	"claimed_by" uuid,
	"claimed_at" timestamp (3) with time zone,
	"first_claimed_at" timestamp (3) with time zone,
	"lost_at" timestamp (3) with time zone,
	"recovered_at" timestamp (3) with time zone,
	"lookup_after" timestamp (3) with time zone,
	"uncertain_attempt" integer,
	"retried_after" integer,
	"lookups" smallint DEFAULT 0 NOT NULL,
	"handoff_started_at" timestamp (3) with time zone,
	"handed_off_at" timestamp (3) with time zone,
	"lateness_ms" bigint,
	"execution_id" text,
	"result_status_code" smallint,
	"result_body" text,
	"error" jsonb,
	"own_payload" text,
	"key" text,
	"overlap_guarded" boolean DEFAULT false NOT NULL,
	"parent_run_id" uuid,
	"open_dependencies" integer,
	"on_dependency_failure" text,
	"has_dependents" boolean DEFAULT false NOT NULL,
	"expires_at" timestamp (3) with time zone,
	"lease_seconds" double precision,
	"worker_id" text,
	"progress" double precision,
	"attempt_log" jsonb,
	"created_at" timestamp (3) with time zone NOT NULL,
	"updated_at" timestamp (3) with time zone NOT NULL,
	"reason" text,
	"finished_at" timestamp (3) with time zone NOT NULL,
	"ended_at" timestamp (3) with time zone NOT NULL
) PARTITION BY RANGE ("ended_at");
--> statement-breakpoint
CREATE TABLE "instances" (
	"id" uuid PRIMARY KEY NOT NULL,
	"host" text NOT NULL,
	"version" text NOT NULL,
	"zone_data" text NOT NULL,
	"started_at" timestamp (3) with time zone NOT NULL,
	"heartbeat_at" timestamp (3) with time zone NOT NULL,
	"ttl_seconds" integer DEFAULT 10 NOT NULL,
	"died_at" timestamp (3) with time zone
);
--> statement-breakpoint
CREATE TABLE "queue_workers" (
	"queue" text COLLATE "C" NOT NULL,
	"worker_id" text COLLATE "C" NOT NULL,
	"seen_at" timestamp (3) with time zone NOT NULL,
	CONSTRAINT "queue_workers_queue_worker_id_pk" PRIMARY KEY("queue","worker_id")
);
--> statement-breakpoint
CREATE TABLE "run_dependencies" (
	"run_id" uuid NOT NULL,
	"depends_on" uuid NOT NULL,
	"position" smallint NOT NULL,
	"counted_at" timestamp (3) with time zone,
	CONSTRAINT "run_dependencies_depends_on_run_id_pk" PRIMARY KEY("depends_on","run_id")
);
--> statement-breakpoint
CREATE TABLE "run_keys" (
	"scope" uuid NOT NULL,
	"key" text NOT NULL,
	"body_hash" "bytea" NOT NULL,
	"run_id" uuid NOT NULL,
	CONSTRAINT "run_keys_key_scope_pk" PRIMARY KEY("key","scope")
);
--> statement-breakpoint
CREATE TABLE "runs" (
	"id" uuid NOT NULL,
	"scheduled_for" timestamp (3) with time zone NOT NULL,
	"schedule_uid" uuid NOT NULL,
	"schedule_version" integer NOT NULL,
	"schedule_id" text COLLATE "C" NOT NULL,
	"trigger" text NOT NULL,
	"status" text NOT NULL,
	"lane" text NOT NULL,
	"priority" smallint NOT NULL,
	"due_at" timestamp (3) with time zone NOT NULL,
	"attempts" integer NOT NULL,
	"failures" integer DEFAULT 0 NOT NULL,
	"recoveries" integer DEFAULT 0 NOT NULL,
	"coalesced" integer DEFAULT 0 NOT NULL,
	"coalesced_from" timestamp (3) with time zone,
	"claimed_by" uuid,
	"claimed_at" timestamp (3) with time zone,
	"first_claimed_at" timestamp (3) with time zone,
	"lost_at" timestamp (3) with time zone,
	"recovered_at" timestamp (3) with time zone,
	"lookup_after" timestamp (3) with time zone,
	"uncertain_attempt" integer,
	"retried_after" integer,
	"lookups" smallint DEFAULT 0 NOT NULL,
	"handoff_started_at" timestamp (3) with time zone,
	"handed_off_at" timestamp (3) with time zone,
	"lateness_ms" bigint,
	"execution_id" text,
	"result_status_code" smallint,
	"result_body" text,
	"error" jsonb,
	"own_payload" text,
	"key" text,
	"overlap_guarded" boolean DEFAULT false NOT NULL,
	"parent_run_id" uuid,
	"open_dependencies" integer,
	"on_dependency_failure" text,
	"has_dependents" boolean DEFAULT false NOT NULL,
	"expires_at" timestamp (3) with time zone,
	"lease_seconds" double precision,
	"worker_id" text,
	"progress" double precision,
	"attempt_log" jsonb,
	"created_at" timestamp (3) with time zone NOT NULL,
	"updated_at" timestamp (3) with time zone NOT NULL,
	"ready" boolean NOT NULL,
	CONSTRAINT "runs_id_pk" PRIMARY KEY("id"),
	CONSTRAINT "runs_finite" CHECK (isfinite(scheduled_for) AND isfinite(due_at) AND isfinite(created_at)),
	CONSTRAINT "runs_finite_claim" CHECK (isfinite(claimed_at) AND isfinite(handoff_started_at) AND isfinite(lookup_after)),
	CONSTRAINT "runs_lane" CHECK (octet_length(lane) <= 1000),
	CONSTRAINT "runs_open" CHECK (status IN ('waiting', 'pending', 'running'))
);
--> statement-breakpoint
CREATE TABLE "schedule_versions" (
	"schedule_uid" uuid NOT NULL,
	"version" integer NOT NULL,
	"schedule_id" text COLLATE "C" NOT NULL,
	"change" text NOT NULL,
	"at" timestamp (3) with time zone NOT NULL,
	"by" text,
	"definition" jsonb NOT NULL,
	"payload" text,
	CONSTRAINT "schedule_versions_schedule_uid_version_pk" PRIMARY KEY("schedule_uid","version")
);
--> statement-breakpoint
CREATE TABLE "schedules" (
	"uid" uuid PRIMARY KEY NOT NULL,
	"id" text COLLATE "C" NOT NULL,
	"version" integer NOT NULL,
	"enabled" boolean NOT NULL,
	"timing" text NOT NULL,
	"zoned" boolean NOT NULL,
	"overlap" text NOT NULL,
	"after_uid" uuid,
	"after_on" text[],
	"after_start_at" timestamp (3) with time zone,
	"after_end_at" timestamp (3) with time zone,
	"after_jitter_seconds" integer,
	"lane" text NOT NULL,
	"priority" smallint NOT NULL,
	"planned_through" timestamp (3) with time zone,
	"next_occurrence_at" timestamp (3) with time zone,
	"next_fire_at" timestamp (3) with time zone,
	"last_fire_at" timestamp (3) with time zone,
	"locked_by" uuid,
	"locked_at" timestamp (3) with time zone,
	"error" text,
	"plan_failures" integer DEFAULT 0 NOT NULL,
	"created_at" timestamp (3) with time zone NOT NULL,
	"updated_at" timestamp (3) with time zone NOT NULL,
	CONSTRAINT "schedules_lane" CHECK (octet_length(lane) <= 1000)
);
--> statement-breakpoint
CREATE TABLE "zone_data" (
	"one" boolean PRIMARY KEY DEFAULT true NOT NULL,
	"version" text NOT NULL,
	"looked_through_at" timestamp (3) with time zone NOT NULL,
	CONSTRAINT "zone_data_one_row" CHECK ("zone_data"."one")
);
--> statement-breakpoint
CREATE INDEX "effects_of_run" ON "effects" USING btree ("run_id");--> statement-breakpoint
CREATE INDEX "history_id" ON "history" USING btree ("id");--> statement-breakpoint
CREATE INDEX "history_of_schedule" ON "history" USING btree ("schedule_uid","id");--> statement-breakpoint
CREATE INDEX "history_coalesced" ON "history" USING btree ("schedule_uid","id") WHERE coalesced > 0;--> statement-breakpoint
CREATE INDEX "history_ends" ON "history" USING btree ("status","id") WHERE status <> 'succeeded';--> statement-breakpoint
CREATE INDEX "history_ends_of_schedule" ON "history" USING btree ("schedule_uid","status","id") WHERE status <> 'succeeded';--> statement-breakpoint
CREATE INDEX "history_seldom" ON "history" USING btree ("trigger","id") WHERE trigger <> 'schedule';--> statement-breakpoint
CREATE INDEX "run_dependencies_of" ON "run_dependencies" USING btree ("run_id","position");--> statement-breakpoint
CREATE INDEX "run_dependencies_open" ON "run_dependencies" USING btree ("depends_on","run_id") WHERE counted_at IS NULL;--> statement-breakpoint
CREATE INDEX "run_keys_of_run" ON "run_keys" USING btree ("run_id");--> statement-breakpoint
CREATE UNIQUE INDEX "runs_one_per_fire" ON "runs" USING btree ("schedule_uid","scheduled_for") WHERE trigger IN ('schedule', 'catchUp', 'backfill');--> statement-breakpoint
CREATE INDEX "runs_unplanned" ON "runs" USING btree ("schedule_uid") WHERE trigger NOT IN ('schedule', 'catchUp', 'backfill');--> statement-breakpoint
CREATE INDEX "runs_guarded" ON "runs" USING btree ("schedule_uid") WHERE overlap_guarded;--> statement-breakpoint
CREATE INDEX "runs_unclaimed" ON "runs" USING btree ("lane","priority","due_at") WHERE status = 'pending' AND claimed_by IS NULL AND ready;--> statement-breakpoint
CREATE INDEX "runs_to_come" ON "runs" USING btree ("due_at") WHERE status = 'pending' AND claimed_by IS NULL AND NOT ready;--> statement-breakpoint
CREATE INDEX "runs_claimed" ON "runs" USING btree ("claimed_by") WHERE status = 'pending' AND claimed_by IS NOT NULL;--> statement-breakpoint
CREATE INDEX "runs_running" ON "runs" USING btree ("expires_at") WHERE status = 'running';--> statement-breakpoint
CREATE INDEX "runs_waiting" ON "runs" USING btree ("schedule_uid") WHERE status = 'waiting';--> statement-breakpoint
CREATE INDEX "schedule_versions_by_id" ON "schedule_versions" USING btree ("schedule_id","schedule_uid");--> statement-breakpoint
CREATE UNIQUE INDEX "schedules_id" ON "schedules" USING btree ("id");--> statement-breakpoint
CREATE INDEX "schedules_due" ON "schedules" USING btree ("next_fire_at") WHERE enabled AND next_fire_at IS NOT NULL;--> statement-breakpoint
CREATE INDEX "schedules_followers" ON "schedules" USING btree ("after_uid") WHERE after_uid IS NOT NULL;--> statement-breakpoint
CREATE INDEX "schedules_apart" ON "schedules" USING btree ("id") WHERE NOT enabled OR error IS NOT NULL OR next_fire_at IS NULL;--> statement-breakpoint
-- What ends on a day that has no partition yet.
CREATE TABLE "history_other" PARTITION OF "history" DEFAULT;--> statement-breakpoint
-- A run stands in exactly one of the two tables: for reads.
CREATE VIEW "all_runs" AS SELECT "id", "scheduled_for", "schedule_uid", "schedule_version", "schedule_id", "trigger", "status", "lane", "priority", "due_at", "attempts", "failures", "recoveries", "coalesced", "coalesced_from", "claimed_by", "claimed_at", "first_claimed_at", "lost_at", "recovered_at", "lookup_after", "uncertain_attempt", "retried_after", "lookups", "handoff_started_at", "handed_off_at", "lateness_ms", "execution_id", "result_status_code", "result_body", "error", "own_payload", "key", "overlap_guarded", "parent_run_id", "open_dependencies", "on_dependency_failure", "has_dependents", "expires_at", "lease_seconds", "worker_id", "progress", "attempt_log", "created_at", "updated_at", NULL::text AS "reason", NULL::timestamp (3) with time zone AS "finished_at" FROM "runs"
UNION ALL SELECT "id", "scheduled_for", "schedule_uid", "schedule_version", "schedule_id", "trigger", "status", "lane", "priority", "due_at", "attempts", "failures", "recoveries", "coalesced", "coalesced_from", "claimed_by", "claimed_at", "first_claimed_at", "lost_at", "recovered_at", "lookup_after", "uncertain_attempt", "retried_after", "lookups", "handoff_started_at", "handed_off_at", "lateness_ms", "execution_id", "result_status_code", "result_body", "error", "own_payload", "key", "overlap_guarded", "parent_run_id", "open_dependencies", "on_dependency_failure", "has_dependents", "expires_at", "lease_seconds", "worker_id", "progress", "attempt_log", "created_at", "updated_at", "reason", "finished_at" FROM "history";--> statement-breakpoint
-- A fire rewrites its schedule's row twice and an instance beats every two seconds: room for the new versions in the same page, and an
-- autovacuum that comes early and works without pauses, since these tables are small and hot.
ALTER TABLE "schedules" SET (fillfactor = 60, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);--> statement-breakpoint
ALTER TABLE "instances" SET (fillfactor = 50);--> statement-breakpoint
-- Rows come and go: vacuum by what went, not by a share of what is there.
ALTER TABLE "runs" SET (fillfactor = 80, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000, autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 50000, autovacuum_vacuum_cost_delay = 0);--> statement-breakpoint
ALTER TABLE "effects" SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0);
