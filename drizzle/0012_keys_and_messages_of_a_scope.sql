-- outside of a transaction
CREATE INDEX CONCURRENTLY "history_of_notifier" ON "history" USING btree ("notifier_id","id") WHERE notifier_id IS NOT NULL;--> statement-breakpoint
CREATE INDEX CONCURRENTLY "run_keys_of_one_offs" ON "run_keys" USING btree ((key COLLATE "C")) WHERE scope = '00000000-0000-0000-0000-000000000000'::uuid;
