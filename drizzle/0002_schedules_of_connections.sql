-- outside of a transaction
CREATE INDEX CONCURRENTLY "schedules_of_connections" ON "schedules" USING btree ("lane","id") WHERE starts_with(lane, 'http connection ');
