-- outside of a transaction
CREATE INDEX CONCURRENTLY "runs_to_judge" ON "runs" USING btree ("schedule_uid","created_at","id") WHERE overlap_guarded AND status = 'waiting';--> statement-breakpoint
CREATE INDEX CONCURRENTLY "runs_replaceable" ON "runs" USING btree ("schedule_uid","created_at","id") WHERE overlap_guarded AND status IN ('pending', 'running') AND trigger <> 'backfill' AND retried_after IS NULL;--> statement-breakpoint
CREATE INDEX CONCURRENTLY "runs_beside" ON "runs" USING btree ("schedule_uid") WHERE overlap_guarded AND status IN ('pending', 'running') AND (trigger = 'backfill' OR retried_after IS NOT NULL);--> statement-breakpoint
DROP INDEX CONCURRENTLY IF EXISTS "runs_guarded";
