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
CREATE TABLE "schedule_calendars" (
	"calendar_id" text COLLATE "C" NOT NULL,
	"schedule_uid" uuid NOT NULL,
	CONSTRAINT "schedule_calendars_calendar_id_schedule_uid_pk" PRIMARY KEY("calendar_id","schedule_uid")
);
--> statement-breakpoint
CREATE INDEX "calendars_unapplied" ON "calendars" USING btree ("id") WHERE applied_version < version;