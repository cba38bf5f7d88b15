-- A fire rewrites its schedule's row twice and an instance beats every two seconds: leave room for the new versions
-- in the same page, and let autovacuum come early and work without pauses, since these tables are small and hot.
ALTER TABLE "schedules" SET (fillfactor = 60, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);--> statement-breakpoint
ALTER TABLE "instances" SET (fillfactor = 50);--> statement-breakpoint
-- History only grows: vacuum it by what came and went, not by a share of what is kept.
ALTER TABLE "runs" SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 50000, autovacuum_vacuum_insert_scale_factor = 0, autovacuum_vacuum_insert_threshold = 200000, autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 50000, autovacuum_vacuum_cost_delay = 0);
