CREATE TABLE "alert_tellings" (
	"alert_id" uuid NOT NULL,
	"notifier_id" text COLLATE "C" NOT NULL,
	"remind_at" timestamp (3) with time zone,
	"held_until" timestamp (3) with time zone,
	"told_over" boolean DEFAULT false NOT NULL,
	CONSTRAINT "alert_tellings_alert_id_notifier_id_pk" PRIMARY KEY("alert_id","notifier_id")
);
--> statement-breakpoint
CREATE TABLE "alerts" (
	"id" uuid PRIMARY KEY NOT NULL,
	"schedule_uid" uuid NOT NULL,
	"schedule_id" text COLLATE "C" NOT NULL,
	"kind" text NOT NULL,
	"since" timestamp (3) with time zone NOT NULL,
	"broken_at" timestamp (3) with time zone NOT NULL,
	"failures" integer DEFAULT 1 NOT NULL,
	"until" timestamp (3) with time zone,
	"run_id" uuid,
	"status" text,
	"error" text,
	"over_by" text,
	"look_at" timestamp (3) with time zone
);
--> statement-breakpoint
CREATE TABLE "audit" (
	"at" timestamp (3) with time zone NOT NULL,
	"id" uuid DEFAULT gen_random_uuid() NOT NULL,
	"by" text,
	"role" text NOT NULL,
	"action" text,
	"subject" text,
	"schedule_id" text COLLATE "C",
	"outcome" text NOT NULL,
	"detail" jsonb NOT NULL,
	"name" text COLLATE "C",
	"scope" text[],
	CONSTRAINT "audit_at_id_pk" PRIMARY KEY("at","id")
) PARTITION BY RANGE ("at");
--> statement-breakpoint
CREATE TABLE "backlogs" (
	"id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "backlogs_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"kind" text NOT NULL,
	"schedule_uid" uuid NOT NULL,
	"schedule_id" text COLLATE "C" NOT NULL,
	"asked_at" timestamp (3) with time zone NOT NULL,
	"kept_run" uuid,
	"position" uuid,
	"next_at" timestamp (3) with time zone NOT NULL,
	"failures" smallint DEFAULT 0 NOT NULL,
	"error" text
);
--> statement-breakpoint
CREATE TABLE "calendar_versions" (
	"calendar_id" text COLLATE "C" NOT NULL,
	"version" integer NOT NULL,
	"at" timestamp (3) with time zone NOT NULL,
	"dates" jsonb,
	"edition" uuid,
	CONSTRAINT "calendar_versions_calendar_id_version_pk" PRIMARY KEY("calendar_id","version")
);
--> statement-breakpoint
CREATE TABLE "calendar_walks" (
	"calendar_id" text COLLATE "C" PRIMARY KEY NOT NULL,
	"version" integer NOT NULL,
	"walker" uuid NOT NULL,
	"until" timestamp (3) with time zone NOT NULL,
	"owing" boolean NOT NULL,
	"after" uuid,
	"has_left" boolean NOT NULL
);
--> statement-breakpoint
CREATE TABLE "calendars" (
	"id" text COLLATE "C" PRIMARY KEY NOT NULL,
	"description" text,
	"version" integer NOT NULL,
	"applied_version" integer NOT NULL,
	"valid_until" date,
	"updated_at" timestamp (3) with time zone NOT NULL
);
--> statement-breakpoint
CREATE TABLE "connections" (
	"id" text COLLATE "C" PRIMARY KEY NOT NULL,
	"uid" uuid NOT NULL,
	"description" text,
	"url" text NOT NULL,
	"definition" jsonb NOT NULL,
	"version" integer NOT NULL,
	"updated_at" timestamp (3) with time zone NOT NULL,
	"placed_at" timestamp (3) with time zone NOT NULL,
	"edition" uuid
);
--> statement-breakpoint
CREATE TABLE "effects" (
	"id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "effects_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"kind" text NOT NULL,
	"run_id" uuid,
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
	"error" text,
	"done_through" uuid,
	"created_at" timestamp (3) with time zone DEFAULT clock_timestamp(),
	"alert_kind" text,
	"scope" jsonb
);
--> statement-breakpoint
CREATE TABLE "held_runs" (
	"run_id" uuid PRIMARY KEY NOT NULL
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
	"in_doubt_until" timestamp (3) with time zone,
	"attempt_in_doubt" integer,
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
	"observed" boolean DEFAULT false NOT NULL,
	"worker_id" text,
	"progress" double precision,
	"attempt_log" jsonb,
	"created_at" timestamp (3) with time zone NOT NULL,
	"updated_at" timestamp (3) with time zone NOT NULL,
	"reason" text,
	"finished_at" timestamp (3) with time zone NOT NULL,
	"ended_at" timestamp (3) with time zone NOT NULL,
	"limit_id" text COLLATE "C",
	"admitted_at" timestamp (3) with time zone,
	"outcome_watched" boolean DEFAULT false NOT NULL,
	"notifier_id" text COLLATE "C",
	"unmet" text[],
	"unmet_reason" text,
	"expires_after_seconds" integer,
	"begin_by" timestamp (3) with time zone,
	CONSTRAINT "history_id_ended_at_pk" PRIMARY KEY("id","ended_at")
) PARTITION BY RANGE ("ended_at");
--> statement-breakpoint
CREATE TABLE "installation" (
	"one" boolean PRIMARY KEY DEFAULT true NOT NULL,
	"mode" text DEFAULT 'works' NOT NULL,
	"mode_since" timestamp (3) with time zone,
	"until" timestamp (3) with time zone,
	"reason" text,
	"took_over_at" timestamp (3) with time zone,
	"took_over_since" timestamp (3) with time zone,
	"took_over_by" text,
	CONSTRAINT "installation_one_row" CHECK ("installation"."one")
);
--> statement-breakpoint
CREATE TABLE "instances" (
	"id" uuid PRIMARY KEY NOT NULL,
	"host" text NOT NULL,
	"port" integer,
	"version" text NOT NULL,
	"zone_data" text NOT NULL,
	"started_at" timestamp (3) with time zone NOT NULL,
	"heartbeat_at" timestamp (3) with time zone NOT NULL,
	"ttl_seconds" integer DEFAULT 10 NOT NULL,
	"died_at" timestamp (3) with time zone,
	"left_at" timestamp (3) with time zone
);
--> statement-breakpoint
CREATE TABLE "limits" (
	"id" text COLLATE "C" PRIMARY KEY NOT NULL,
	"description" text,
	"max_running" integer NOT NULL,
	"version" integer DEFAULT 1 NOT NULL,
	"updated_at" timestamp (3) with time zone NOT NULL,
	CONSTRAINT "limits_max_running" CHECK (max_running BETWEEN 1 AND 10000)
);
--> statement-breakpoint
CREATE TABLE "message_alerts" (
	"run_id" uuid NOT NULL,
	"alert_id" uuid NOT NULL,
	CONSTRAINT "message_alerts_run_id_alert_id_pk" PRIMARY KEY("run_id","alert_id")
);
--> statement-breakpoint
CREATE TABLE "messages" (
	"run_id" uuid PRIMARY KEY NOT NULL,
	"notifier_id" text COLLATE "C" NOT NULL,
	"event" text NOT NULL,
	"gathers_until" timestamp (3) with time zone,
	"fallback_for" text COLLATE "C",
	"passed_on" boolean DEFAULT false NOT NULL,
	"created_at" timestamp (3) with time zone NOT NULL
);
--> statement-breakpoint
CREATE TABLE "notifiers" (
	"id" text COLLATE "C" PRIMARY KEY NOT NULL,
	"uid" uuid NOT NULL,
	"description" text,
	"enabled" boolean NOT NULL,
	"kinds" text[] NOT NULL,
	"filter" jsonb NOT NULL,
	"channel" text NOT NULL,
	"remind_seconds" integer,
	"after_failures" integer DEFAULT 1 NOT NULL,
	"fallback" text COLLATE "C",
	"version" integer NOT NULL,
	"updated_at" timestamp (3) with time zone NOT NULL
);
--> statement-breakpoint
CREATE TABLE "ping_keys" (
	"schedule_uid" uuid PRIMARY KEY NOT NULL,
	"key_hash" "bytea" NOT NULL,
	"key" jsonb NOT NULL,
	CONSTRAINT "ping_keys_hash" UNIQUE("key_hash")
);
--> statement-breakpoint
CREATE TABLE "outcome_watches" (
	"schedule_uid" uuid PRIMARY KEY NOT NULL,
	"pause_after_failures" integer,
	"failures_since" timestamp (3) with time zone NOT NULL,
	"success_within_seconds" integer,
	"success_since" timestamp (3) with time zone NOT NULL,
	"last_success_at" timestamp (3) with time zone,
	"look_at" timestamp (3) with time zone
);
--> statement-breakpoint
CREATE TABLE "queue_workers" (
	"queue" text COLLATE "C" NOT NULL,
	"worker_id" text COLLATE "C" NOT NULL,
	"seen_at" timestamp (3) with time zone NOT NULL,
	CONSTRAINT "queue_workers_queue_worker_id_pk" PRIMARY KEY("queue","worker_id")
);
--> statement-breakpoint
CREATE TABLE "batches" (
	"id" uuid PRIMARY KEY NOT NULL,
	"name" text,
	"labels" jsonb NOT NULL,
	"created_at" timestamp (3) with time zone NOT NULL
);
--> statement-breakpoint
CREATE TABLE "run_tags" (
	"run_id" uuid PRIMARY KEY NOT NULL,
	"batch_id" uuid,
	"ref" text,
	"place" smallint,
	"labels" jsonb
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
CREATE TABLE "run_logs" (
	"day" timestamp (3) with time zone NOT NULL,
	"run_id" uuid NOT NULL,
	"attempt" integer NOT NULL,
	"place" bigint NOT NULL,
	"at_offset" bigint NOT NULL,
	"bytes" "bytea" NOT NULL,
	CONSTRAINT "run_logs_run_id_attempt_place_day_pk" PRIMARY KEY("run_id","attempt","place","day")
) PARTITION BY RANGE ("day");
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
	"in_doubt_until" timestamp (3) with time zone,
	"attempt_in_doubt" integer,
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
	"observed" boolean DEFAULT false NOT NULL,
	"worker_id" text,
	"progress" double precision,
	"attempt_log" jsonb,
	"created_at" timestamp (3) with time zone NOT NULL,
	"updated_at" timestamp (3) with time zone NOT NULL,
	"ready" boolean NOT NULL,
	"limit_id" text COLLATE "C",
	"admitted_at" timestamp (3) with time zone,
	"outcome_watched" boolean DEFAULT false NOT NULL,
	"notifier_id" text COLLATE "C",
	"unmet" text[],
	"unmet_reason" text,
	"expires_after_seconds" integer,
	"begin_by" timestamp (3) with time zone,
	"next_bound" text,
	"bound_at" timestamp (3) with time zone,
	"finish_within_seconds" integer,
	CONSTRAINT "runs_id_pk" PRIMARY KEY("id"),
	CONSTRAINT "runs_finite" CHECK (isfinite(scheduled_for) AND isfinite(due_at) AND isfinite(created_at)),
	CONSTRAINT "runs_finite_claim" CHECK (isfinite(claimed_at) AND isfinite(handoff_started_at) AND isfinite(in_doubt_until) AND isfinite(admitted_at)
        AND isfinite(begin_by)),
	CONSTRAINT "runs_place" CHECK (CASE WHEN limit_id IS NULL THEN admitted_at IS NULL
      WHEN admitted_at IS NULL THEN NOT ready AND claimed_by IS NULL AND status <> 'running'
      ELSE ready AND status <> 'waiting' END),
	CONSTRAINT "runs_observed" CHECK (NOT observed OR NOT ready AND claimed_by IS NULL AND limit_id IS NULL),
	CONSTRAINT "runs_lane" CHECK (octet_length(lane) <= 1000),
	CONSTRAINT "runs_open" CHECK (status IN ('waiting', 'pending', 'running'))
);
--> statement-breakpoint
CREATE TABLE "schedule_calendars" (
	"calendar_id" text COLLATE "C" NOT NULL,
	"schedule_uid" uuid NOT NULL,
	CONSTRAINT "schedule_calendars_calendar_id_schedule_uid_pk" PRIMARY KEY("calendar_id","schedule_uid")
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
	"edition" uuid,
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
	"pause_until" timestamp (3) with time zone,
	"outcome_watched" boolean DEFAULT false NOT NULL,
	"limit_id" text COLLATE "C",
	"has_skips" boolean DEFAULT false NOT NULL,
	"start_within_seconds" integer,
	"finish_within_seconds" integer,
	"expires_after_seconds" integer,
	"report_seconds" double precision,
	"observe_until" timestamp (3) with time zone,
	"heartbeat" boolean DEFAULT false NOT NULL,
	"edition" uuid,
	CONSTRAINT "schedules_lane" CHECK (octet_length(lane) <= 1000)
);
--> statement-breakpoint
CREATE TABLE "sessions" (
	"id_hash" text PRIMARY KEY NOT NULL,
	"token_hash" text NOT NULL,
	"is_secure" boolean NOT NULL,
	"expires_at" timestamp (3) with time zone NOT NULL
);
--> statement-breakpoint
CREATE TABLE "skips" (
	"schedule_uid" uuid NOT NULL,
	"fire_at" timestamp (3) with time zone NOT NULL,
	"reason" text,
	"by" text,
	"asked_at" timestamp (3) with time zone NOT NULL,
	"made" boolean DEFAULT false NOT NULL,
	CONSTRAINT "skips_schedule_uid_fire_at_pk" PRIMARY KEY("schedule_uid","fire_at")
);
--> statement-breakpoint
CREATE TABLE "zone_data" (
	"one" boolean PRIMARY KEY DEFAULT true NOT NULL,
	"version" text NOT NULL,
	"looked_through_at" timestamp (3) with time zone NOT NULL,
	CONSTRAINT "zone_data_one_row" CHECK ("zone_data"."one")
);
--> statement-breakpoint
CREATE INDEX "alert_tellings_to_remind" ON "alert_tellings" USING btree ("remind_at") WHERE remind_at IS NOT NULL;--> statement-breakpoint
CREATE UNIQUE INDEX "alerts_open" ON "alerts" USING btree ("schedule_uid","kind") WHERE until IS NULL;--> statement-breakpoint
CREATE INDEX "alerts_late" ON "alerts" USING btree ("schedule_uid") WHERE kind = 'late' AND until IS NULL;--> statement-breakpoint
CREATE INDEX "alerts_open_in_order" ON "alerts" USING btree ("id") WHERE until IS NULL;--> statement-breakpoint
CREATE INDEX "alerts_of_schedule" ON "alerts" USING btree ("schedule_id","id");--> statement-breakpoint
CREATE INDEX "alerts_over" ON "alerts" USING btree ("until") WHERE until IS NOT NULL;--> statement-breakpoint
CREATE INDEX "alerts_over_of" ON "alerts" USING btree ("schedule_uid","until") WHERE until IS NOT NULL;--> statement-breakpoint
CREATE INDEX "alerts_to_look" ON "alerts" USING btree ("look_at") WHERE look_at IS NOT NULL;--> statement-breakpoint
CREATE INDEX "audit_of_name" ON "audit" USING btree ("name","at","id") WHERE name IS NOT NULL;--> statement-breakpoint
CREATE INDEX "audit_by" ON "audit" USING btree ("by","at","id");--> statement-breakpoint
CREATE INDEX "audit_of_schedule" ON "audit" USING btree ("schedule_id","at","id") WHERE schedule_id IS NOT NULL;--> statement-breakpoint
CREATE INDEX "audit_seldom" ON "audit" USING btree ("action","at","id") WHERE action <> 'run.complete';--> statement-breakpoint
CREATE INDEX "backlogs_of_schedule" ON "backlogs" USING btree ("schedule_uid");--> statement-breakpoint
CREATE INDEX "calendars_ending" ON "calendars" USING btree ("valid_until") WHERE valid_until IS NOT NULL;--> statement-breakpoint
CREATE INDEX "calendars_unapplied" ON "calendars" USING btree ("id") WHERE applied_version < version;--> statement-breakpoint
CREATE INDEX "effects_of_run" ON "effects" USING btree ("run_id");--> statement-breakpoint
CREATE INDEX "effects_new" ON "effects" USING btree ("id") WHERE done_through IS NULL AND NOT kind IN ('breaks', 'heals', 'undelivered');--> statement-breakpoint
CREATE INDEX "effects_of_alerts" ON "effects" USING btree ("id") WHERE done_through IS NULL AND kind IN ('breaks', 'heals', 'undelivered');--> statement-breakpoint
CREATE INDEX "effects_begun" ON "effects" USING btree ("id") WHERE done_through IS NOT NULL;--> statement-breakpoint
CREATE INDEX "history_of_schedule" ON "history" USING btree ("schedule_uid","id");--> statement-breakpoint
CREATE INDEX "history_coalesced" ON "history" USING btree ("schedule_uid","id") WHERE coalesced > 0;--> statement-breakpoint
CREATE INDEX "history_ends" ON "history" USING btree ("status","id") WHERE status <> 'succeeded';--> statement-breakpoint
CREATE INDEX "history_ends_of_schedule" ON "history" USING btree ("schedule_uid","status","id") WHERE status <> 'succeeded';--> statement-breakpoint
CREATE INDEX "history_seldom" ON "history" USING btree ("trigger","id") WHERE trigger <> 'schedule';--> statement-breakpoint
CREATE INDEX "history_reported" ON "history" USING btree ("schedule_uid","execution_id") WHERE observed AND execution_id IS NOT NULL;--> statement-breakpoint
CREATE INDEX "history_unreported" ON "history" USING btree ("schedule_uid","id") WHERE observed AND execution_id IS NULL AND status = 'failed' AND error->>'kind' = 'expired';--> statement-breakpoint
CREATE INDEX "history_of_notifier" ON "history" USING btree ("notifier_id","id") WHERE notifier_id IS NOT NULL;--> statement-breakpoint
CREATE INDEX "history_unmet" ON "history" USING btree ("id") WHERE unmet IS NOT NULL;--> statement-breakpoint
CREATE INDEX "history_watched_successes" ON "history" USING btree ("schedule_uid","finished_at") WHERE outcome_watched AND status = 'succeeded';--> statement-breakpoint
CREATE INDEX "history_watched_failures" ON "history" USING btree ("schedule_uid","finished_at") WHERE outcome_watched AND status IN ('failed', 'unknown', 'abandoned');--> statement-breakpoint
CREATE INDEX "messages_to_close" ON "messages" USING btree ("gathers_until") WHERE gathers_until IS NOT NULL;--> statement-breakpoint
CREATE INDEX "message_alerts_by_alert" ON "message_alerts" USING btree ("alert_id");--> statement-breakpoint
CREATE INDEX "messages_by_age" ON "messages" USING btree ("created_at");--> statement-breakpoint
CREATE INDEX "outcome_watches_to_look" ON "outcome_watches" USING btree ("look_at") WHERE look_at IS NOT NULL;--> statement-breakpoint
CREATE INDEX "queue_workers_seen" ON "queue_workers" USING btree ("seen_at");--> statement-breakpoint
CREATE INDEX "run_dependencies_of" ON "run_dependencies" USING btree ("run_id","position");--> statement-breakpoint
CREATE INDEX "run_dependencies_open" ON "run_dependencies" USING btree ("depends_on","run_id") WHERE counted_at IS NULL;--> statement-breakpoint
CREATE INDEX "run_tags_of_batch" ON "run_tags" USING btree ("batch_id","place") WHERE batch_id IS NOT NULL;--> statement-breakpoint
CREATE INDEX "run_tags_labels" ON "run_tags" USING gin (labels jsonb_path_ops) WITH (fastupdate=false) WHERE labels IS NOT NULL;--> statement-breakpoint
CREATE INDEX "run_keys_of_run" ON "run_keys" USING btree ("run_id");--> statement-breakpoint
CREATE INDEX "run_keys_of_one_offs" ON "run_keys" USING btree ((key COLLATE "C")) WHERE scope = '00000000-0000-0000-0000-000000000000'::uuid;--> statement-breakpoint
CREATE UNIQUE INDEX "runs_one_per_fire" ON "runs" USING btree ("schedule_uid","scheduled_for") WHERE trigger IN ('schedule', 'catchUp', 'backfill');--> statement-breakpoint
CREATE INDEX "runs_unplanned" ON "runs" USING btree ("schedule_uid") WHERE trigger NOT IN ('schedule', 'catchUp', 'backfill');--> statement-breakpoint
CREATE INDEX "runs_waiting_in_order" ON "runs" USING btree ("schedule_uid","created_at","id") WHERE status = 'waiting';--> statement-breakpoint
CREATE INDEX "runs_replaceable" ON "runs" USING btree ("schedule_uid","created_at","id") WHERE overlap_guarded AND status IN ('pending', 'running') AND trigger <> 'backfill' AND retried_after IS NULL;--> statement-breakpoint
CREATE INDEX "runs_beside" ON "runs" USING btree ("schedule_uid") WHERE overlap_guarded AND status IN ('pending', 'running') AND (trigger = 'backfill' OR retried_after IS NOT NULL);--> statement-breakpoint
CREATE INDEX "runs_unclaimed" ON "runs" USING btree ("lane","priority","due_at") WHERE status = 'pending' AND claimed_by IS NULL AND ready;--> statement-breakpoint
CREATE INDEX "runs_to_come" ON "runs" USING btree ("due_at") WHERE status = 'pending' AND claimed_by IS NULL AND NOT ready AND limit_id IS NULL AND NOT observed;--> statement-breakpoint
CREATE INDEX "runs_bounded" ON "runs" USING btree ("bound_at") WHERE bound_at IS NOT NULL;--> statement-breakpoint
CREATE INDEX "runs_expiring" ON "runs" USING btree ("begin_by") WHERE begin_by IS NOT NULL AND claimed_by IS NULL AND status <> 'running';--> statement-breakpoint
CREATE INDEX "runs_unmet" ON "runs" USING btree ("id") WHERE unmet IS NOT NULL;--> statement-breakpoint
CREATE INDEX "runs_of_notifier" ON "runs" USING btree ("notifier_id","id") WHERE notifier_id IS NOT NULL;--> statement-breakpoint
CREATE INDEX "runs_claimed" ON "runs" USING btree ("claimed_by") WHERE status = 'pending' AND claimed_by IS NOT NULL;--> statement-breakpoint
CREATE INDEX "runs_running" ON "runs" USING btree ("expires_at") WHERE status = 'running' OR observed;--> statement-breakpoint
CREATE INDEX "runs_observed" ON "runs" USING btree ("schedule_uid","status","id") WHERE observed AND execution_id IS NULL;--> statement-breakpoint
CREATE INDEX "runs_reported" ON "runs" USING btree ("schedule_uid","execution_id") WHERE observed AND execution_id IS NOT NULL;--> statement-breakpoint
CREATE INDEX "runs_to_admit" ON "runs" USING btree ("limit_id","priority","due_at") WHERE status = 'pending' AND limit_id IS NOT NULL AND admitted_at IS NULL;--> statement-breakpoint
CREATE INDEX "runs_limited" ON "runs" USING btree ("limit_id","admitted_at") WHERE limit_id IS NOT NULL;--> statement-breakpoint
CREATE INDEX "schedule_versions_by_id" ON "schedule_versions" USING btree ("schedule_id","schedule_uid");--> statement-breakpoint
CREATE INDEX "schedule_versions_labels" ON "schedule_versions" USING gin ((definition->'labels') jsonb_path_ops) WITH (fastupdate=false) WHERE (definition->'labels') <> '{}'::jsonb;--> statement-breakpoint
CREATE UNIQUE INDEX "schedules_id" ON "schedules" USING btree ("id");--> statement-breakpoint
CREATE INDEX "schedules_due" ON "schedules" USING btree ("next_fire_at") WHERE enabled AND next_fire_at IS NOT NULL;--> statement-breakpoint
CREATE INDEX "schedules_followers_in_order" ON "schedules" USING btree ("after_uid","uid") WHERE after_uid IS NOT NULL;--> statement-breakpoint
CREATE INDEX "schedules_limited" ON "schedules" USING btree ("limit_id","id") WHERE limit_id IS NOT NULL;--> statement-breakpoint
CREATE INDEX "schedules_apart" ON "schedules" USING btree ("id") WHERE NOT enabled OR error IS NOT NULL OR next_fire_at IS NULL;--> statement-breakpoint
CREATE INDEX "schedules_of_connections" ON "schedules" USING btree ("lane","id") WHERE starts_with(lane, 'http connection ');--> statement-breakpoint
CREATE INDEX "schedules_pausing" ON "schedules" USING btree ("pause_until") WHERE pause_until IS NOT NULL;--> statement-breakpoint
CREATE INDEX "sessions_of_token" ON "sessions" USING btree ("token_hash","expires_at");--> statement-breakpoint
CREATE INDEX "sessions_over" ON "sessions" USING btree ("expires_at");--> statement-breakpoint
-- What ends on a day that has no partition yet.
CREATE TABLE "history_other" PARTITION OF "history" DEFAULT;--> statement-breakpoint
-- A run stands in exactly one of the two tables: for reads.
CREATE VIEW "all_runs" AS SELECT "id", "scheduled_for", "schedule_uid", "schedule_version", "schedule_id", "trigger", "status", "lane", "priority", "due_at", "attempts", "failures", "recoveries", "coalesced", "coalesced_from", "claimed_by", "claimed_at", "first_claimed_at", "lost_at", "recovered_at", "in_doubt_until", "attempt_in_doubt", "retried_after", "lookups", "handoff_started_at", "handed_off_at", "lateness_ms", "execution_id", "result_status_code", "result_body", "error", "own_payload", "key", "overlap_guarded", "parent_run_id", "open_dependencies", "on_dependency_failure", "has_dependents", "expires_at", "lease_seconds", "worker_id", "progress", "attempt_log", "created_at", "updated_at", NULL::text AS "reason", NULL::timestamp (3) with time zone AS "finished_at", "limit_id", "admitted_at", "outcome_watched", "notifier_id", "unmet", "unmet_reason", "expires_after_seconds", "begin_by", "observed" FROM "runs"
UNION ALL SELECT "id", "scheduled_for", "schedule_uid", "schedule_version", "schedule_id", "trigger", "status", "lane", "priority", "due_at", "attempts", "failures", "recoveries", "coalesced", "coalesced_from", "claimed_by", "claimed_at", "first_claimed_at", "lost_at", "recovered_at", "in_doubt_until", "attempt_in_doubt", "retried_after", "lookups", "handoff_started_at", "handed_off_at", "lateness_ms", "execution_id", "result_status_code", "result_body", "error", "own_payload", "key", "overlap_guarded", "parent_run_id", "open_dependencies", "on_dependency_failure", "has_dependents", "expires_at", "lease_seconds", "worker_id", "progress", "attempt_log", "created_at", "updated_at", "reason", "finished_at", "limit_id", "admitted_at", "outcome_watched", "notifier_id", "unmet", "unmet_reason", "expires_after_seconds", "begin_by", "observed" FROM "history";--> statement-breakpoint
-- A herd locks all schedules of a page at once, and a fire rewrites its schedule's row twice: each row needs room for a second version in its
-- page, or the update enters all indexes. An instance beats every two seconds. These tables are small and hot: autovacuum comes early to
-- them, and works without pauses.
ALTER TABLE "schedules" SET (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0, fillfactor = 50);--> statement-breakpoint
ALTER TABLE "instances" SET (fillfactor = 50);--> statement-breakpoint
-- Rows come and go: vacuum by what went, not by a share of what is there.
ALTER TABLE "runs" SET (fillfactor = 80, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000, autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 50000, autovacuum_vacuum_cost_delay = 0);--> statement-breakpoint
ALTER TABLE "effects" SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0);--> statement-breakpoint
-- What is written on a day that has no partition yet.
CREATE TABLE "audit_other" PARTITION OF "audit" DEFAULT;--> statement-breakpoint
CREATE TABLE "run_logs_other" PARTITION OF "run_logs" DEFAULT;--> statement-breakpoint
-- What belongs to no day, and is deleted by the run.
CREATE TABLE "run_logs_late" PARTITION OF "run_logs" FOR VALUES FROM ('infinity') TO (MAXVALUE);--> statement-breakpoint
-- The two functions below make and drop the days of history, audit and the logs of runs. They run with the rights of their owner, who owns the tables:
-- so the role of the daemon needs no right to create or drop anything. They take one of these tables and a day, and nothing else.
CREATE FUNCTION "firelock_create_day"("parent" text, "day" date) RETURNS void LANGUAGE plpgsql SECURITY DEFINER AS $body$
DECLARE
  moment text := CASE parent WHEN 'history' THEN 'ended_at' WHEN 'audit' THEN 'at' WHEN 'run_logs' THEN 'day' END;
  name text := parent || '_' || to_char(day, 'YYYYMMDD');
  lower text := to_char(day, 'YYYY-MM-DD') || 'T00:00:00Z';
  upper text := to_char(day + 1, 'YYYY-MM-DD') || 'T00:00:00Z';
BEGIN
  IF moment IS NULL OR day IS NULL OR NOT isfinite(day) THEN
    RAISE invalid_parameter_value USING MESSAGE = 'there are days of history, of audit and of run_logs only';
  END IF;
  IF NOT pg_try_advisory_xact_lock(hashtext('firelock history ' || current_schema())) THEN
    RAISE lock_not_available USING MESSAGE = 'another instance changes the tables of history';
  END IF;
  IF to_regclass(format('%I.%I', current_schema(), name)) IS NOT NULL THEN RETURN; END IF;
  -- Insert-only: vacuumed by the number of new rows, not by their share of the table. Partitions do not inherit this.
  EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING INDEXES)
    WITH (autovacuum_vacuum_insert_scale_factor = 0, autovacuum_vacuum_insert_threshold = 200000,
      autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 50000)', name, parent);
  EXECUTE format('LOCK TABLE ONLY %I IN SHARE ROW EXCLUSIVE MODE', parent);
  EXECUTE format('LOCK TABLE %I IN ACCESS EXCLUSIVE MODE', parent || '_other');
  EXECUTE format('WITH moved AS (DELETE FROM %I WHERE %I >= %L AND %I < %L RETURNING *) INSERT INTO %I SELECT * FROM moved',
    parent || '_other', moment, lower, moment, upper, name);
  EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)', parent, name, lower, upper);
END
$body$;--> statement-breakpoint
CREATE FUNCTION "firelock_drop_day"("parent" text, "day" date) RETURNS void LANGUAGE plpgsql SECURITY DEFINER AS $body$
DECLARE
  name text := parent || '_' || to_char(day, 'YYYYMMDD');
BEGIN
  IF parent NOT IN ('history', 'audit', 'run_logs') OR name IS NULL THEN
    RAISE invalid_parameter_value USING MESSAGE = 'there are days of history, of audit and of run_logs only';
  END IF;
  IF NOT pg_try_advisory_xact_lock(hashtext('firelock history ' || current_schema())) THEN
    RAISE lock_not_available USING MESSAGE = 'another instance changes the tables of history';
  END IF;
  IF NOT EXISTS (
    SELECT FROM pg_inherits
    WHERE inhparent = to_regclass(format('%I.%I', current_schema(), parent))
      AND inhrelid = to_regclass(format('%I.%I', current_schema(), name))
  ) THEN
    RAISE undefined_table USING MESSAGE = format('%s is no day of %s', name, parent);
  END IF;
  EXECUTE format('DROP TABLE %I', name);
END
$body$;--> statement-breakpoint
-- Where the functions look for names is fixed, since others call them: in the schema of these tables, whatever the caller has set.
DO $body$
BEGIN
  EXECUTE format('ALTER FUNCTION firelock_create_day(text, date) SET search_path = %I, pg_temp', current_schema());
  EXECUTE format('ALTER FUNCTION firelock_drop_day(text, date) SET search_path = %I, pg_temp', current_schema());
END
$body$;--> statement-breakpoint
REVOKE EXECUTE ON FUNCTION "firelock_create_day"(text, date), "firelock_drop_day"(text, date) FROM PUBLIC;--> statement-breakpoint
INSERT INTO "installation" DEFAULT VALUES;
