ALTER TABLE "runs" ADD COLUMN "overlap_guarded" boolean DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE "runs" ADD COLUMN "parent_run_id" uuid;--> statement-breakpoint
ALTER TABLE "schedule_versions" ADD COLUMN "by" text;--> statement-breakpoint
ALTER TABLE "schedules" ADD COLUMN "timing" text;--> statement-breakpoint
ALTER TABLE "schedules" ADD COLUMN "timing_version" integer;--> statement-breakpoint
ALTER TABLE "schedules" ADD COLUMN "overlap" text DEFAULT 'allow' NOT NULL;--> statement-breakpoint
ALTER TABLE "schedules" ADD COLUMN "after_uid" uuid;--> statement-breakpoint
ALTER TABLE "schedules" ADD COLUMN "after_on" text[];--> statement-breakpoint
ALTER TABLE "schedules" ADD COLUMN "after_start_at" timestamp (3) with time zone;--> statement-breakpoint
ALTER TABLE "schedules" ADD COLUMN "after_end_at" timestamp (3) with time zone;--> statement-breakpoint
ALTER TABLE "schedules" ADD COLUMN "after_jitter_seconds" integer;--> statement-breakpoint
CREATE INDEX "runs_guarded" ON "runs" USING btree ("schedule_uid") WHERE overlap_guarded AND status IN ('waiting', 'pending', 'running');--> statement-breakpoint
CREATE INDEX "runs_coalesced" ON "runs" USING btree ("schedule_uid","scheduled_for") WHERE coalesced > 0;--> statement-breakpoint
CREATE INDEX "schedules_followers" ON "schedules" USING btree ("after_uid") WHERE after_uid IS NOT NULL;