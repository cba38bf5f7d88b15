-- outside of a transaction
CREATE INDEX CONCURRENTLY "runs_of_notifier" ON "runs" USING btree ("notifier_id","id") WHERE notifier_id IS NOT NULL;
