ALTER TABLE "effects" ADD COLUMN "done_through" uuid;--> statement-breakpoint
-- Two steps: a column with such a default would rewrite the table. Rows that are there keep NULL.
ALTER TABLE "effects" ADD COLUMN "created_at" timestamp (3) with time zone;--> statement-breakpoint
ALTER TABLE "effects" ALTER COLUMN "created_at" SET DEFAULT clock_timestamp();
