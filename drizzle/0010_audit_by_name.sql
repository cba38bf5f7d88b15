-- outside of a transaction
CREATE INDEX CONCURRENTLY "audit_of_name" ON "audit" USING btree ("name","at","id") WHERE name IS NOT NULL;
