-- outside of a transaction
CREATE INDEX CONCURRENTLY "runs_waiting_in_order" ON "runs" USING btree ("schedule_uid","created_at","id") WHERE status = 'waiting';--> statement-breakpoint
DROP INDEX CONCURRENTLY IF EXISTS "runs_to_judge";--> statement-breakpoint
DROP INDEX CONCURRENTLY IF EXISTS "runs_waiting";
