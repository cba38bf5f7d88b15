CREATE TABLE "audit" (
	"at" timestamp (3) with time zone NOT NULL,
	"id" uuid DEFAULT gen_random_uuid() NOT NULL,
	"by" text,
	"role" text NOT NULL,
	"action" text,
	"subject" text,
	"schedule_id" text COLLATE "C",
	"outcome" text NOT NULL,
	"detail" jsonb NOT NULL,
	CONSTRAINT "audit_at_id_pk" PRIMARY KEY("at","id")
) PARTITION BY RANGE ("at");
--> statement-breakpoint
CREATE INDEX "audit_by" ON "audit" USING btree ("by","at","id");--> statement-breakpoint
CREATE INDEX "audit_of_schedule" ON "audit" USING btree ("schedule_id","at","id") WHERE schedule_id IS NOT NULL;--> statement-breakpoint
CREATE INDEX "audit_seldom" ON "audit" USING btree ("action","at","id") WHERE action <> 'run.complete';--> statement-breakpoint
-- What is written on a day that has no partition yet.
CREATE TABLE "audit_other" PARTITION OF "audit" DEFAULT;--> statement-breakpoint
-- The two functions below make and drop the days of history and audit. They run with the rights of their owner, who owns the tables:
-- so the role of the daemon needs no right to create or drop anything. They take a table of these two and a day, and nothing else.
CREATE FUNCTION "firelock_create_day"("parent" text, "day" date) RETURNS void LANGUAGE plpgsql SECURITY DEFINER AS $body$
DECLARE
  moment text := CASE parent WHEN 'history' THEN 'ended_at' WHEN 'audit' THEN 'at' END;
  name text := parent || '_' || to_char(day, 'YYYYMMDD');
  lower text := to_char(day, 'YYYY-MM-DD') || 'T00:00:00Z';
  upper text := to_char(day + 1, 'YYYY-MM-DD') || 'T00:00:00Z';
BEGIN
  IF moment IS NULL OR day IS NULL OR NOT isfinite(day) THEN
    RAISE invalid_parameter_value USING MESSAGE = 'there are days of history and of audit only';
  END IF;
  IF NOT pg_try_advisory_xact_lock(hashtext('firelock history ' || current_schema())) THEN
    RAISE lock_not_available USING MESSAGE = 'another instance changes the tables of history';
  END IF;
  IF to_regclass(format('%I.%I', current_schema(), name)) IS NOT NULL THEN RETURN; END IF;
  -- Insert-only: vacuumed by the number of new rows, not by their share of the table. Partitions do not inherit this.
  EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING INDEXES)
    WITH (autovacuum_vacuum_insert_scale_factor = 0, autovacuum_vacuum_insert_threshold = 200000,
      autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 50000)', name, parent);
  EXECUTE format('LOCK TABLE ONLY %I IN SHARE ROW EXCLUSIVE MODE', parent);
  EXECUTE format('LOCK TABLE %I IN ACCESS EXCLUSIVE MODE', parent || '_other');
  EXECUTE format('WITH moved AS (DELETE FROM %I WHERE %I >= %L AND %I < %L RETURNING *) INSERT INTO %I SELECT * FROM moved',
    parent || '_other', moment, lower, moment, upper, name);
  EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)', parent, name, lower, upper);
END
$body$;--> statement-breakpoint
CREATE FUNCTION "firelock_drop_day"("parent" text, "day" date) RETURNS void LANGUAGE plpgsql SECURITY DEFINER AS $body$
DECLARE
  name text := parent || '_' || to_char(day, 'YYYYMMDD');
BEGIN
  IF parent NOT IN ('history', 'audit') OR name IS NULL THEN
    RAISE invalid_parameter_value USING MESSAGE = 'there are days of history and of audit only';
  END IF;
  IF NOT pg_try_advisory_xact_lock(hashtext('firelock history ' || current_schema())) THEN
    RAISE lock_not_available USING MESSAGE = 'another instance changes the tables of history';
  END IF;
  IF NOT EXISTS (
    SELECT FROM pg_inherits
    WHERE inhparent = to_regclass(format('%I.%I', current_schema(), parent))
      AND inhrelid = to_regclass(format('%I.%I', current_schema(), name))
  ) THEN
    RAISE undefined_table USING MESSAGE = format('%s is no day of %s', name, parent);
  END IF;
  EXECUTE format('DROP TABLE %I', name);
END
$body$;--> statement-breakpoint
-- Where the functions look for names is fixed, since others call them: in the schema of these tables, whatever the caller has set.
DO $body$
BEGIN
  EXECUTE format('ALTER FUNCTION firelock_create_day(text, date) SET search_path = %I, pg_temp', current_schema());
  EXECUTE format('ALTER FUNCTION firelock_drop_day(text, date) SET search_path = %I, pg_temp', current_schema());
END
$body$;--> statement-breakpoint
REVOKE EXECUTE ON FUNCTION "firelock_create_day"(text, date), "firelock_drop_day"(text, date) FROM PUBLIC;
