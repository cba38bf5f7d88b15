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
CREATE INDEX "backlogs_of_schedule" ON "backlogs" USING btree ("schedule_uid");