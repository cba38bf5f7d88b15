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
DROP INDEX "runs_guarded";--> statement-breakpoint
CREATE INDEX "backlogs_of_schedule" ON "backlogs" USING btree ("schedule_uid");--> statement-breakpoint
CREATE INDEX "runs_to_judge" ON "runs" USING btree ("schedule_uid","created_at","id") WHERE overlap_guarded AND status = 'waiting';--> statement-breakpoint
CREATE INDEX "runs_replaceable" ON "runs" USING btree ("schedule_uid","created_at","id") WHERE overlap_guarded AND status IN ('pending', 'running') AND trigger <> 'backfill' AND retried_after IS NULL;--> statement-breakpoint
CREATE INDEX "runs_beside" ON "runs" USING btree ("schedule_uid") WHERE overlap_guarded AND status IN ('pending', 'running') AND (trigger = 'backfill' OR retried_after IS NOT NULL);