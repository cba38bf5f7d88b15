ALTER TABLE "attempts" ADD COLUMN "lookup" text;--> statement-breakpoint
ALTER TABLE "instances" ADD COLUMN "ttl_seconds" integer DEFAULT 10 NOT NULL;--> statement-breakpoint
ALTER TABLE "runs" ADD COLUMN "lost_at" timestamp (3) with time zone;--> statement-breakpoint
ALTER TABLE "runs" ADD COLUMN "recovered_at" timestamp (3) with time zone;--> statement-breakpoint
ALTER TABLE "runs" ADD COLUMN "in_doubt_until" timestamp (3) with time zone;--> statement-breakpoint
ALTER TABLE "runs" ADD COLUMN "lookups" smallint DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE "runs" ADD CONSTRAINT "runs_finite" CHECK (isfinite(scheduled_for) AND isfinite(due_at) AND isfinite(created_at));--> statement-breakpoint
ALTER TABLE "runs" ADD CONSTRAINT "runs_finite_claim" CHECK (isfinite(claimed_at) AND isfinite(handoff_started_at) AND isfinite(in_doubt_until));