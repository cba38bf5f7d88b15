ALTER TABLE "runs" ADD COLUMN "notifier_id" text COLLATE "C";--> statement-breakpoint
ALTER TABLE "runs" ADD COLUMN "unmet" text[];--> statement-breakpoint
ALTER TABLE "runs" ADD COLUMN "next_bound" text;--> statement-breakpoint
ALTER TABLE "runs" ADD COLUMN "bound_at" timestamp (3) with time zone;--> statement-breakpoint
ALTER TABLE "runs" ADD COLUMN "finish_within_seconds" integer;
