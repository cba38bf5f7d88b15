ALTER TABLE "schedules" ADD COLUMN "start_within_seconds" integer;--> statement-breakpoint
ALTER TABLE "schedules" ADD COLUMN "finish_within_seconds" integer;