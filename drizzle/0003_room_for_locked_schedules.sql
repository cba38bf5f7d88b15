-- A herd locks all schedules of a page at once: each needs a second version there, or the update enters all indexes.
ALTER TABLE "schedules" SET (fillfactor = 50);
