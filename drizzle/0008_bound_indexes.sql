-- outside of a transaction
CREATE INDEX CONCURRENTLY "history_unmet" ON "history" USING btree ("id") WHERE unmet IS NOT NULL;--> statement-breakpoint
CREATE INDEX CONCURRENTLY "runs_bounded" ON "runs" USING btree ("bound_at") WHERE bound_at IS NOT NULL;--> statement-breakpoint
CREATE INDEX CONCURRENTLY "runs_unmet" ON "runs" USING btree ("id") WHERE unmet IS NOT NULL;
