-- outside of a transaction
CREATE INDEX CONCURRENTLY "schedules_followers_in_order" ON "schedules" USING btree ("after_uid","uid") WHERE after_uid IS NOT NULL;--> statement-breakpoint
DROP INDEX CONCURRENTLY IF EXISTS "schedules_followers";
