CREATE TABLE "skips" (
	"schedule_uid" uuid NOT NULL,
	"fire_at" timestamp (3) with time zone NOT NULL,
	"reason" text,
	"by" text,
	"asked_at" timestamp (3) with time zone NOT NULL,
	CONSTRAINT "skips_schedule_uid_fire_at_pk" PRIMARY KEY("schedule_uid","fire_at")
);
--> statement-breakpoint
ALTER TABLE "schedules" ADD COLUMN "has_skips" boolean DEFAULT false NOT NULL;