CREATE TABLE "attempts" (
	"run_id" uuid NOT NULL,
	"scheduled_for" timestamp (3) with time zone NOT NULL,
	"attempt" integer NOT NULL,
	"instance_id" uuid NOT NULL,
	"started_at" timestamp (3) with time zone NOT NULL,
	"finished_at" timestamp (3) with time zone NOT NULL,
	"outcome" text NOT NULL,
	"status_code" smallint,
	"error" jsonb,
	"recovery" boolean NOT NULL,
	CONSTRAINT "attempts_scheduled_for_run_id_attempt_pk" PRIMARY KEY("scheduled_for","run_id","attempt")
);
--> statement-breakpoint
CREATE TABLE "instances" (
	"id" uuid PRIMARY KEY NOT NULL,
	"host" text NOT NULL,
	"version" text NOT NULL,
	"zone_data" text NOT NULL,
	"started_at" timestamp (3) with time zone NOT NULL,
	"heartbeat_at" timestamp (3) with time zone NOT NULL,
	"died_at" timestamp (3) with time zone
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
	"reason" text,
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
	"handoff_started_at" timestamp (3) with time zone,
	"handed_off_at" timestamp (3) with time zone,
	"finished_at" timestamp (3) with time zone,
	"lateness_ms" bigint,
	"execution_id" text,
	"result_status_code" smallint,
	"result_body" text,
	"error" jsonb,
	"own_payload" text,
	"key" text,
	"created_at" timestamp (3) with time zone NOT NULL,
	"updated_at" timestamp (3) with time zone NOT NULL,
	CONSTRAINT "runs_scheduled_for_id_pk" PRIMARY KEY("scheduled_for","id")
);
--> statement-breakpoint
CREATE TABLE "schedule_versions" (
	"schedule_uid" uuid NOT NULL,
	"version" integer NOT NULL,
	"schedule_id" text COLLATE "C" NOT NULL,
	"change" text NOT NULL,
	"at" timestamp (3) with time zone NOT NULL,
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
	"cron" text NOT NULL,
	"timezone" text,
	"lane" text NOT NULL,
	"priority" smallint NOT NULL,
	"next_occurrence_at" timestamp (3) with time zone,
	"next_fire_at" timestamp (3) with time zone,
	"last_fire_at" timestamp (3) with time zone,
	"locked_by" uuid,
	"locked_at" timestamp (3) with time zone,
	"error" text,
	"plan_failures" integer DEFAULT 0 NOT NULL,
	"created_at" timestamp (3) with time zone NOT NULL,
	"updated_at" timestamp (3) with time zone NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX "runs_one_per_fire" ON "runs" USING btree ("schedule_uid","scheduled_for") WHERE trigger IN ('schedule', 'catchUp', 'backfill');--> statement-breakpoint
CREATE INDEX "runs_unplanned" ON "runs" USING btree ("schedule_uid","scheduled_for","id") WHERE trigger NOT IN ('schedule', 'catchUp', 'backfill');--> statement-breakpoint
CREATE INDEX "runs_unclaimed" ON "runs" USING btree ("lane","priority","due_at") WHERE status = 'pending' AND claimed_by IS NULL;--> statement-breakpoint
CREATE INDEX "runs_claimed" ON "runs" USING btree ("claimed_by") WHERE status = 'pending' AND claimed_by IS NOT NULL;--> statement-breakpoint
CREATE INDEX "schedule_versions_by_id" ON "schedule_versions" USING btree ("schedule_id","schedule_uid");--> statement-breakpoint
CREATE UNIQUE INDEX "schedules_id" ON "schedules" USING btree ("id");--> statement-breakpoint
CREATE INDEX "schedules_due" ON "schedules" USING btree ("next_fire_at") WHERE enabled AND next_fire_at IS NOT NULL;