-- Lists find what is rare among ten million runs, or a million schedules, by indexes of its own. A plain fire enters none of them, but
-- each reads its table through once: on large ones that takes seconds, and writes wait for it. Version N-1 works on unchanged.
CREATE INDEX "runs_ends" ON "runs" USING btree ("status","scheduled_for","id","trigger") WHERE status IN ('failed', 'unknown', 'abandoned', 'skipped', 'cancelled');--> statement-breakpoint
CREATE INDEX "runs_ends_of_schedule" ON "runs" USING btree ("schedule_uid","status","scheduled_for","id","trigger") WHERE status IN ('failed', 'unknown', 'abandoned', 'skipped', 'cancelled');--> statement-breakpoint
CREATE INDEX "runs_seldom" ON "runs" USING btree ("trigger","scheduled_for","id","schedule_uid") WHERE trigger NOT IN ('schedule', 'api');--> statement-breakpoint
CREATE INDEX "schedules_apart" ON "schedules" USING btree ("id") WHERE NOT enabled OR error IS NOT NULL OR next_fire_at IS NULL;
