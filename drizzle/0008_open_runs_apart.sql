-- The same index, in words that "pending" does not imply: claims were planned by it, and read the whole backlog each. Reads runs through
-- once, under a lock. Version N-1 works on, and looks for the oldest open run without an index.
DROP INDEX "runs_open";--> statement-breakpoint
CREATE INDEX "runs_open" ON "runs" USING btree ("scheduled_for") WHERE CASE WHEN status IN ('waiting', 'pending', 'running') THEN true END;