CREATE TABLE "alert_tellings" (
	"alert_id" uuid NOT NULL,
	"notifier_id" text COLLATE "C" NOT NULL,
	"remind_at" timestamp (3) with time zone,
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
	"until" timestamp (3) with time zone,
	"run_id" uuid,
	"status" text,
	"error" text,
	"look_at" timestamp (3) with time zone
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
	"fallback" text COLLATE "C",
	"version" integer NOT NULL,
	"updated_at" timestamp (3) with time zone NOT NULL
);
--> statement-breakpoint
CREATE INDEX "alert_tellings_to_remind" ON "alert_tellings" USING btree ("remind_at") WHERE remind_at IS NOT NULL;--> statement-breakpoint
CREATE UNIQUE INDEX "alerts_open" ON "alerts" USING btree ("schedule_uid","kind") WHERE until IS NULL;--> statement-breakpoint
CREATE INDEX "alerts_open_in_order" ON "alerts" USING btree ("id") WHERE until IS NULL;--> statement-breakpoint
CREATE INDEX "alerts_of_schedule" ON "alerts" USING btree ("schedule_id","id");--> statement-breakpoint
CREATE INDEX "alerts_over" ON "alerts" USING btree ("until") WHERE until IS NOT NULL;--> statement-breakpoint
CREATE INDEX "alerts_to_look" ON "alerts" USING btree ("look_at") WHERE look_at IS NOT NULL;--> statement-breakpoint
CREATE INDEX "messages_to_close" ON "messages" USING btree ("gathers_until") WHERE gathers_until IS NOT NULL;--> statement-breakpoint
CREATE INDEX "messages_by_age" ON "messages" USING btree ("created_at");