-- The schema as the migrations in this folder make it. `npm run schema` writes this file: read it, and change src/postgres/schema.ts.
-- history has a partition for each UTC day of ended_at beside its default one, history_other.

CREATE TABLE alert_tellings (
  alert_id uuid NOT NULL,
  notifier_id text COLLATE "C" NOT NULL,
  remind_at timestamp(3) with time zone,
  held_until timestamp(3) with time zone,
  told_over boolean NOT NULL DEFAULT false,
  CONSTRAINT alert_tellings_alert_id_notifier_id_pk PRIMARY KEY (alert_id, notifier_id)
);
CREATE INDEX alert_tellings_to_remind ON public.alert_tellings USING btree (remind_at) WHERE (remind_at IS NOT NULL);

CREATE TABLE alerts (
  id uuid NOT NULL,
  schedule_uid uuid NOT NULL,
  schedule_id text COLLATE "C" NOT NULL,
  kind text NOT NULL,
  since timestamp(3) with time zone NOT NULL,
  broken_at timestamp(3) with time zone NOT NULL,
  failures integer NOT NULL DEFAULT 1,
  until timestamp(3) with time zone,
  run_id uuid,
  status text,
  error text,
  over_by text,
  look_at timestamp(3) with time zone,
  CONSTRAINT alerts_pkey PRIMARY KEY (id)
);
CREATE INDEX alerts_late ON public.alerts USING btree (schedule_uid) WHERE ((kind = 'late'::text) AND (until IS NULL));
CREATE INDEX alerts_of_schedule ON public.alerts USING btree (schedule_id, id);
CREATE UNIQUE INDEX alerts_open ON public.alerts USING btree (schedule_uid, kind) WHERE (until IS NULL);
CREATE INDEX alerts_open_in_order ON public.alerts USING btree (id) WHERE (until IS NULL);
CREATE INDEX alerts_over ON public.alerts USING btree (until) WHERE (until IS NOT NULL);
CREATE INDEX alerts_over_of ON public.alerts USING btree (schedule_uid, until) WHERE (until IS NOT NULL);
CREATE INDEX alerts_to_look ON public.alerts USING btree (look_at) WHERE (look_at IS NOT NULL);

CREATE TABLE audit (
  at timestamp(3) with time zone NOT NULL,
  id uuid NOT NULL DEFAULT gen_random_uuid(),
  by text,
  role text NOT NULL,
  action text,
  subject text,
  schedule_id text COLLATE "C",
  outcome text NOT NULL,
  detail jsonb NOT NULL,
  name text COLLATE "C",
  scope text[],
  CONSTRAINT audit_at_id_pk PRIMARY KEY (at, id)
) PARTITION BY RANGE (at);
CREATE INDEX audit_by ON ONLY public.audit USING btree (by, at, id);
CREATE INDEX audit_of_name ON ONLY public.audit USING btree (name, at, id) WHERE (name IS NOT NULL);
CREATE INDEX audit_of_schedule ON ONLY public.audit USING btree (schedule_id, at, id) WHERE (schedule_id IS NOT NULL);
CREATE INDEX audit_seldom ON ONLY public.audit USING btree (action, at, id) WHERE (action <> 'run.complete'::text);

CREATE TABLE backlogs (
  id bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
  kind text NOT NULL,
  schedule_uid uuid NOT NULL,
  schedule_id text COLLATE "C" NOT NULL,
  asked_at timestamp(3) with time zone NOT NULL,
  kept_run uuid,
  position uuid,
  next_at timestamp(3) with time zone NOT NULL,
  failures smallint NOT NULL DEFAULT 0,
  error text,
  CONSTRAINT backlogs_pkey PRIMARY KEY (id)
);
CREATE INDEX backlogs_of_schedule ON public.backlogs USING btree (schedule_uid);

CREATE TABLE calendar_versions (
  calendar_id text COLLATE "C" NOT NULL,
  version integer NOT NULL,
  at timestamp(3) with time zone NOT NULL,
  dates jsonb,
  edition uuid,
  CONSTRAINT calendar_versions_calendar_id_version_pk PRIMARY KEY (calendar_id, version)
);

CREATE TABLE calendar_walks (
  calendar_id text COLLATE "C" NOT NULL,
  version integer NOT NULL,
  walker uuid NOT NULL,
  until timestamp(3) with time zone NOT NULL,
  owing boolean NOT NULL,
  after uuid,
  has_left boolean NOT NULL,
  CONSTRAINT calendar_walks_pkey PRIMARY KEY (calendar_id)
);

CREATE TABLE calendars (
  id text COLLATE "C" NOT NULL,
  description text,
  version integer NOT NULL,
  applied_version integer NOT NULL,
  valid_until date,
  updated_at timestamp(3) with time zone NOT NULL,
  CONSTRAINT calendars_pkey PRIMARY KEY (id)
);
CREATE INDEX calendars_ending ON public.calendars USING btree (valid_until) WHERE (valid_until IS NOT NULL);
CREATE INDEX calendars_unapplied ON public.calendars USING btree (id) WHERE (applied_version < version);

CREATE TABLE connections (
  id text COLLATE "C" NOT NULL,
  uid uuid NOT NULL,
  description text,
  url text NOT NULL,
  definition jsonb NOT NULL,
  version integer NOT NULL,
  updated_at timestamp(3) with time zone NOT NULL,
  placed_at timestamp(3) with time zone NOT NULL,
  edition uuid,
  CONSTRAINT connections_pkey PRIMARY KEY (id)
);

CREATE TABLE effects (
  id bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
  kind text NOT NULL,
  run_id uuid,
  schedule_uid uuid NOT NULL,
  schedule_version integer NOT NULL,
  schedule_id text COLLATE "C" NOT NULL,
  trigger text NOT NULL,
  status text NOT NULL,
  finished_at timestamp(3) with time zone NOT NULL,
  attempt integer NOT NULL,
  follower_uid uuid,
  failures smallint NOT NULL DEFAULT 0,
  retry_at timestamp(3) with time zone,
  error text,
  done_through uuid,
  created_at timestamp(3) with time zone DEFAULT clock_timestamp(),
  alert_kind text,
  CONSTRAINT effects_pkey PRIMARY KEY (id)
) WITH (autovacuum_vacuum_scale_factor=0, autovacuum_vacuum_threshold=5000, autovacuum_vacuum_cost_delay=0);
CREATE INDEX effects_begun ON public.effects USING btree (id) WHERE (done_through IS NOT NULL);
CREATE INDEX effects_new ON public.effects USING btree (id) WHERE ((done_through IS NULL) AND (NOT (kind = ANY (ARRAY['breaks'::text, 'heals'::text, 'undelivered'::text]))));
CREATE INDEX effects_of_alerts ON public.effects USING btree (id) WHERE ((done_through IS NULL) AND (kind = ANY (ARRAY['breaks'::text, 'heals'::text, 'undelivered'::text])));
CREATE INDEX effects_of_run ON public.effects USING btree (run_id);

CREATE TABLE firelock_migrations (
  hash text NOT NULL,
  applied_at timestamp(3) with time zone NOT NULL,
  CONSTRAINT firelock_migrations_pkey PRIMARY KEY (hash)
);

CREATE TABLE held_runs (
  run_id uuid NOT NULL,
  CONSTRAINT held_runs_pkey PRIMARY KEY (run_id)
);

CREATE TABLE history (
  id uuid NOT NULL,
  scheduled_for timestamp(3) with time zone NOT NULL,
  schedule_uid uuid NOT NULL,
  schedule_version integer NOT NULL,
  schedule_id text COLLATE "C" NOT NULL,
  trigger text NOT NULL,
  status text NOT NULL,
  lane text NOT NULL,
  priority smallint NOT NULL,
  due_at timestamp(3) with time zone NOT NULL,
  attempts integer NOT NULL,
  failures integer NOT NULL DEFAULT 0,
  recoveries integer NOT NULL DEFAULT 0,
  coalesced integer NOT NULL DEFAULT 0,
  coalesced_from timestamp(3) with time zone,
  claimed_by uuid,
  claimed_at timestamp(3) with time zone,
  first_claimed_at timestamp(3) with time zone,
  lost_at timestamp(3) with time zone,
  recovered_at timestamp(3) with time zone,
  in_doubt_until timestamp(3) with time zone,
  attempt_in_doubt integer,
  retried_after integer,
  lookups smallint NOT NULL DEFAULT 0,
  handoff_started_at timestamp(3) with time zone,
  handed_off_at timestamp(3) with time zone,
  lateness_ms bigint,
  execution_id text,
  result_status_code smallint,
  result_body text,
  error jsonb,
  own_payload text,
  key text,
  overlap_guarded boolean NOT NULL DEFAULT false,
  parent_run_id uuid,
  open_dependencies integer,
  on_dependency_failure text,
  has_dependents boolean NOT NULL DEFAULT false,
  expires_at timestamp(3) with time zone,
  lease_seconds double precision,
  worker_id text,
  progress double precision,
  attempt_log jsonb,
  created_at timestamp(3) with time zone NOT NULL,
  updated_at timestamp(3) with time zone NOT NULL,
  reason text,
  finished_at timestamp(3) with time zone NOT NULL,
  ended_at timestamp(3) with time zone NOT NULL,
  limit_id text COLLATE "C",
  admitted_at timestamp(3) with time zone,
  outcome_watched boolean NOT NULL DEFAULT false,
  notifier_id text COLLATE "C",
  unmet text[],
  expires_after_seconds integer,
  begin_by timestamp(3) with time zone,
  CONSTRAINT history_id_ended_at_pk PRIMARY KEY (id, ended_at)
) PARTITION BY RANGE (ended_at);
CREATE INDEX history_coalesced ON ONLY public.history USING btree (schedule_uid, id) WHERE (coalesced > 0);
CREATE INDEX history_ends ON ONLY public.history USING btree (status, id) WHERE (status <> 'succeeded'::text);
CREATE INDEX history_ends_of_schedule ON ONLY public.history USING btree (schedule_uid, status, id) WHERE (status <> 'succeeded'::text);
CREATE INDEX history_of_notifier ON ONLY public.history USING btree (notifier_id, id) WHERE (notifier_id IS NOT NULL);
CREATE INDEX history_of_schedule ON ONLY public.history USING btree (schedule_uid, id);
CREATE INDEX history_seldom ON ONLY public.history USING btree (trigger, id) WHERE (trigger <> 'schedule'::text);
CREATE INDEX history_unmet ON ONLY public.history USING btree (id) WHERE (unmet IS NOT NULL);
CREATE INDEX history_watched_failures ON ONLY public.history USING btree (schedule_uid, finished_at) WHERE (outcome_watched AND (status = ANY (ARRAY['failed'::text, 'unknown'::text, 'abandoned'::text])));
CREATE INDEX history_watched_successes ON ONLY public.history USING btree (schedule_uid, finished_at) WHERE (outcome_watched AND (status = 'succeeded'::text));

CREATE TABLE installation (
  one boolean NOT NULL DEFAULT true,
  mode text NOT NULL DEFAULT 'works'::text,
  mode_since timestamp(3) with time zone,
  until timestamp(3) with time zone,
  reason text,
  took_over_at timestamp(3) with time zone,
  took_over_since timestamp(3) with time zone,
  took_over_by text,
  CONSTRAINT installation_pkey PRIMARY KEY (one),
  CONSTRAINT installation_one_row CHECK (one)
);

CREATE TABLE instances (
  id uuid NOT NULL,
  host text NOT NULL,
  version text NOT NULL,
  zone_data text NOT NULL,
  started_at timestamp(3) with time zone NOT NULL,
  heartbeat_at timestamp(3) with time zone NOT NULL,
  ttl_seconds integer NOT NULL DEFAULT 10,
  died_at timestamp(3) with time zone,
  CONSTRAINT instances_pkey PRIMARY KEY (id)
) WITH (fillfactor=50);

CREATE TABLE limits (
  id text COLLATE "C" NOT NULL,
  description text,
  max_running integer NOT NULL,
  version integer NOT NULL DEFAULT 1,
  updated_at timestamp(3) with time zone NOT NULL,
  CONSTRAINT limits_pkey PRIMARY KEY (id),
  CONSTRAINT limits_max_running CHECK (((max_running >= 1) AND (max_running <= 10000)))
);

CREATE TABLE message_alerts (
  run_id uuid NOT NULL,
  alert_id uuid NOT NULL,
  CONSTRAINT message_alerts_run_id_alert_id_pk PRIMARY KEY (run_id, alert_id)
);
CREATE INDEX message_alerts_by_alert ON public.message_alerts USING btree (alert_id);

CREATE TABLE messages (
  run_id uuid NOT NULL,
  notifier_id text COLLATE "C" NOT NULL,
  event text NOT NULL,
  gathers_until timestamp(3) with time zone,
  fallback_for text COLLATE "C",
  passed_on boolean NOT NULL DEFAULT false,
  created_at timestamp(3) with time zone NOT NULL,
  CONSTRAINT messages_pkey PRIMARY KEY (run_id)
);
CREATE INDEX messages_by_age ON public.messages USING btree (created_at);
CREATE INDEX messages_to_close ON public.messages USING btree (gathers_until) WHERE (gathers_until IS NOT NULL);

CREATE TABLE notifiers (
  id text COLLATE "C" NOT NULL,
  uid uuid NOT NULL,
  description text,
  enabled boolean NOT NULL,
  kinds text[] NOT NULL,
  filter jsonb NOT NULL,
  channel text NOT NULL,
  remind_seconds integer,
  after_failures integer NOT NULL DEFAULT 1,
  fallback text COLLATE "C",
  version integer NOT NULL,
  updated_at timestamp(3) with time zone NOT NULL,
  CONSTRAINT notifiers_pkey PRIMARY KEY (id)
);

CREATE TABLE outcome_watches (
  schedule_uid uuid NOT NULL,
  pause_after_failures integer,
  failures_since timestamp(3) with time zone NOT NULL,
  success_within_seconds integer,
  success_since timestamp(3) with time zone NOT NULL,
  last_success_at timestamp(3) with time zone,
  look_at timestamp(3) with time zone,
  CONSTRAINT outcome_watches_pkey PRIMARY KEY (schedule_uid)
);
CREATE INDEX outcome_watches_to_look ON public.outcome_watches USING btree (look_at) WHERE (look_at IS NOT NULL);

CREATE TABLE queue_workers (
  queue text COLLATE "C" NOT NULL,
  worker_id text COLLATE "C" NOT NULL,
  seen_at timestamp(3) with time zone NOT NULL,
  CONSTRAINT queue_workers_queue_worker_id_pk PRIMARY KEY (queue, worker_id)
);
CREATE INDEX queue_workers_seen ON public.queue_workers USING btree (seen_at);

CREATE TABLE run_dependencies (
  run_id uuid NOT NULL,
  depends_on uuid NOT NULL,
  position smallint NOT NULL,
  counted_at timestamp(3) with time zone,
  CONSTRAINT run_dependencies_depends_on_run_id_pk PRIMARY KEY (depends_on, run_id)
);
CREATE INDEX run_dependencies_of ON public.run_dependencies USING btree (run_id, "position");
CREATE INDEX run_dependencies_open ON public.run_dependencies USING btree (depends_on, run_id) WHERE (counted_at IS NULL);

CREATE TABLE run_keys (
  scope uuid NOT NULL,
  key text NOT NULL,
  body_hash bytea NOT NULL,
  run_id uuid NOT NULL,
  CONSTRAINT run_keys_key_scope_pk PRIMARY KEY (key, scope)
);
CREATE INDEX run_keys_of_one_offs ON public.run_keys USING btree (key COLLATE "C") WHERE (scope = '00000000-0000-0000-0000-000000000000'::uuid);
CREATE INDEX run_keys_of_run ON public.run_keys USING btree (run_id);

CREATE TABLE runs (
  id uuid NOT NULL,
  scheduled_for timestamp(3) with time zone NOT NULL,
  schedule_uid uuid NOT NULL,
  schedule_version integer NOT NULL,
  schedule_id text COLLATE "C" NOT NULL,
  trigger text NOT NULL,
  status text NOT NULL,
  lane text NOT NULL,
  priority smallint NOT NULL,
  due_at timestamp(3) with time zone NOT NULL,
  attempts integer NOT NULL,
  failures integer NOT NULL DEFAULT 0,
  recoveries integer NOT NULL DEFAULT 0,
  coalesced integer NOT NULL DEFAULT 0,
  coalesced_from timestamp(3) with time zone,
  claimed_by uuid,
  claimed_at timestamp(3) with time zone,
  first_claimed_at timestamp(3) with time zone,
  lost_at timestamp(3) with time zone,
  recovered_at timestamp(3) with time zone,
  in_doubt_until timestamp(3) with time zone,
  attempt_in_doubt integer,
  retried_after integer,
  lookups smallint NOT NULL DEFAULT 0,
  handoff_started_at timestamp(3) with time zone,
  handed_off_at timestamp(3) with time zone,
  lateness_ms bigint,
  execution_id text,
  result_status_code smallint,
  result_body text,
  error jsonb,
  own_payload text,
  key text,
  overlap_guarded boolean NOT NULL DEFAULT false,
  parent_run_id uuid,
  open_dependencies integer,
  on_dependency_failure text,
  has_dependents boolean NOT NULL DEFAULT false,
  expires_at timestamp(3) with time zone,
  lease_seconds double precision,
  worker_id text,
  progress double precision,
  attempt_log jsonb,
  created_at timestamp(3) with time zone NOT NULL,
  updated_at timestamp(3) with time zone NOT NULL,
  ready boolean NOT NULL,
  limit_id text COLLATE "C",
  admitted_at timestamp(3) with time zone,
  outcome_watched boolean NOT NULL DEFAULT false,
  notifier_id text COLLATE "C",
  unmet text[],
  expires_after_seconds integer,
  begin_by timestamp(3) with time zone,
  next_bound text,
  bound_at timestamp(3) with time zone,
  finish_within_seconds integer,
  CONSTRAINT runs_id_pk PRIMARY KEY (id),
  CONSTRAINT runs_finite CHECK ((isfinite(scheduled_for) AND isfinite(due_at) AND isfinite(created_at))),
  CONSTRAINT runs_finite_claim CHECK ((isfinite(claimed_at) AND isfinite(handoff_started_at) AND isfinite(in_doubt_until) AND isfinite(admitted_at) AND isfinite(begin_by))),
  CONSTRAINT runs_lane CHECK ((octet_length(lane) <= 1000)),
  CONSTRAINT runs_open CHECK ((status = ANY (ARRAY['waiting'::text, 'pending'::text, 'running'::text]))),
  CONSTRAINT runs_place CHECK (
CASE
    WHEN (limit_id IS NULL) THEN (admitted_at IS NULL)
    WHEN (admitted_at IS NULL) THEN ((NOT ready) AND (claimed_by IS NULL) AND (status <> 'running'::text))
    ELSE (ready AND (status <> 'waiting'::text))
END)
) WITH (fillfactor=80, autovacuum_vacuum_scale_factor=0, autovacuum_vacuum_threshold=20000, autovacuum_analyze_scale_factor=0, autovacuum_analyze_threshold=50000, autovacuum_vacuum_cost_delay=0);
CREATE INDEX runs_beside ON public.runs USING btree (schedule_uid) WHERE (overlap_guarded AND (status = ANY (ARRAY['pending'::text, 'running'::text])) AND ((trigger = 'backfill'::text) OR (retried_after IS NOT NULL)));
CREATE INDEX runs_bounded ON public.runs USING btree (bound_at) WHERE (bound_at IS NOT NULL);
CREATE INDEX runs_claimed ON public.runs USING btree (claimed_by) WHERE ((status = 'pending'::text) AND (claimed_by IS NOT NULL));
CREATE INDEX runs_expiring ON public.runs USING btree (begin_by) WHERE ((begin_by IS NOT NULL) AND (claimed_by IS NULL) AND (status <> 'running'::text));
CREATE INDEX runs_limited ON public.runs USING btree (limit_id, admitted_at) WHERE (limit_id IS NOT NULL);
CREATE INDEX runs_of_notifier ON public.runs USING btree (notifier_id, id) WHERE (notifier_id IS NOT NULL);
CREATE UNIQUE INDEX runs_one_per_fire ON public.runs USING btree (schedule_uid, scheduled_for) WHERE (trigger = ANY (ARRAY['schedule'::text, 'catchUp'::text, 'backfill'::text]));
CREATE INDEX runs_replaceable ON public.runs USING btree (schedule_uid, created_at, id) WHERE (overlap_guarded AND (status = ANY (ARRAY['pending'::text, 'running'::text])) AND (trigger <> 'backfill'::text) AND (retried_after IS NULL));
CREATE INDEX runs_running ON public.runs USING btree (expires_at) WHERE (status = 'running'::text);
CREATE INDEX runs_to_admit ON public.runs USING btree (limit_id, priority, due_at) WHERE ((status = 'pending'::text) AND (limit_id IS NOT NULL) AND (admitted_at IS NULL));
CREATE INDEX runs_to_come ON public.runs USING btree (due_at) WHERE ((status = 'pending'::text) AND (claimed_by IS NULL) AND (NOT ready) AND (limit_id IS NULL));
CREATE INDEX runs_unclaimed ON public.runs USING btree (lane, priority, due_at) WHERE ((status = 'pending'::text) AND (claimed_by IS NULL) AND ready);
CREATE INDEX runs_unmet ON public.runs USING btree (id) WHERE (unmet IS NOT NULL);
CREATE INDEX runs_unplanned ON public.runs USING btree (schedule_uid) WHERE (trigger <> ALL (ARRAY['schedule'::text, 'catchUp'::text, 'backfill'::text]));
CREATE INDEX runs_waiting_in_order ON public.runs USING btree (schedule_uid, created_at, id) WHERE (status = 'waiting'::text);

CREATE TABLE schedule_calendars (
  calendar_id text COLLATE "C" NOT NULL,
  schedule_uid uuid NOT NULL,
  CONSTRAINT schedule_calendars_calendar_id_schedule_uid_pk PRIMARY KEY (calendar_id, schedule_uid)
);

CREATE TABLE schedule_versions (
  schedule_uid uuid NOT NULL,
  version integer NOT NULL,
  schedule_id text COLLATE "C" NOT NULL,
  change text NOT NULL,
  at timestamp(3) with time zone NOT NULL,
  by text,
  definition jsonb NOT NULL,
  payload text,
  edition uuid,
  CONSTRAINT schedule_versions_schedule_uid_version_pk PRIMARY KEY (schedule_uid, version)
);
CREATE INDEX schedule_versions_by_id ON public.schedule_versions USING btree (schedule_id, schedule_uid);
CREATE INDEX schedule_versions_labels ON public.schedule_versions USING gin (((definition -> 'labels'::text)) jsonb_path_ops) WITH (fastupdate='false') WHERE ((definition -> 'labels'::text) <> '{}'::jsonb);

CREATE TABLE schedules (
  uid uuid NOT NULL,
  id text COLLATE "C" NOT NULL,
  version integer NOT NULL,
  enabled boolean NOT NULL,
  timing text NOT NULL,
  zoned boolean NOT NULL,
  overlap text NOT NULL,
  after_uid uuid,
  after_on text[],
  after_start_at timestamp(3) with time zone,
  after_end_at timestamp(3) with time zone,
  after_jitter_seconds integer,
  lane text NOT NULL,
  priority smallint NOT NULL,
  planned_through timestamp(3) with time zone,
  next_occurrence_at timestamp(3) with time zone,
  next_fire_at timestamp(3) with time zone,
  last_fire_at timestamp(3) with time zone,
  locked_by uuid,
  locked_at timestamp(3) with time zone,
  error text,
  plan_failures integer NOT NULL DEFAULT 0,
  created_at timestamp(3) with time zone NOT NULL,
  updated_at timestamp(3) with time zone NOT NULL,
  pause_until timestamp(3) with time zone,
  outcome_watched boolean NOT NULL DEFAULT false,
  limit_id text COLLATE "C",
  has_skips boolean NOT NULL DEFAULT false,
  start_within_seconds integer,
  finish_within_seconds integer,
  expires_after_seconds integer,
  edition uuid,
  CONSTRAINT schedules_pkey PRIMARY KEY (uid),
  CONSTRAINT schedules_lane CHECK ((octet_length(lane) <= 1000))
) WITH (autovacuum_vacuum_scale_factor=0.05, autovacuum_vacuum_cost_delay=0, fillfactor=50);
CREATE INDEX schedules_apart ON public.schedules USING btree (id) WHERE ((NOT enabled) OR (error IS NOT NULL) OR (next_fire_at IS NULL));
CREATE INDEX schedules_due ON public.schedules USING btree (next_fire_at) WHERE (enabled AND (next_fire_at IS NOT NULL));
CREATE INDEX schedules_followers_in_order ON public.schedules USING btree (after_uid, uid) WHERE (after_uid IS NOT NULL);
CREATE UNIQUE INDEX schedules_id ON public.schedules USING btree (id);
CREATE INDEX schedules_limited ON public.schedules USING btree (limit_id, id) WHERE (limit_id IS NOT NULL);
CREATE INDEX schedules_of_connections ON public.schedules USING btree (lane, id) WHERE starts_with(lane, 'http connection '::text);
CREATE INDEX schedules_pausing ON public.schedules USING btree (pause_until) WHERE (pause_until IS NOT NULL);

CREATE TABLE skips (
  schedule_uid uuid NOT NULL,
  fire_at timestamp(3) with time zone NOT NULL,
  reason text,
  by text,
  asked_at timestamp(3) with time zone NOT NULL,
  made boolean NOT NULL DEFAULT false,
  CONSTRAINT skips_schedule_uid_fire_at_pk PRIMARY KEY (schedule_uid, fire_at)
);

CREATE TABLE zone_data (
  one boolean NOT NULL DEFAULT true,
  version text NOT NULL,
  looked_through_at timestamp(3) with time zone NOT NULL,
  CONSTRAINT zone_data_pkey PRIMARY KEY (one),
  CONSTRAINT zone_data_one_row CHECK (one)
);

CREATE VIEW all_runs AS
SELECT runs.id,
    runs.scheduled_for,
    runs.schedule_uid,
    runs.schedule_version,
    runs.schedule_id,
    runs.trigger,
    runs.status,
    runs.lane,
    runs.priority,
    runs.due_at,
    runs.attempts,
    runs.failures,
    runs.recoveries,
    runs.coalesced,
    runs.coalesced_from,
    runs.claimed_by,
    runs.claimed_at,
    runs.first_claimed_at,
    runs.lost_at,
    runs.recovered_at,
    runs.in_doubt_until,
    runs.attempt_in_doubt,
    runs.retried_after,
    runs.lookups,
    runs.handoff_started_at,
    runs.handed_off_at,
    runs.lateness_ms,
    runs.execution_id,
    runs.result_status_code,
    runs.result_body,
    runs.error,
    runs.own_payload,
    runs.key,
    runs.overlap_guarded,
    runs.parent_run_id,
    runs.open_dependencies,
    runs.on_dependency_failure,
    runs.has_dependents,
    runs.expires_at,
    runs.lease_seconds,
    runs.worker_id,
    runs.progress,
    runs.attempt_log,
    runs.created_at,
    runs.updated_at,
    NULL::text AS reason,
    NULL::timestamp(3) with time zone AS finished_at,
    runs.limit_id,
    runs.admitted_at,
    runs.outcome_watched,
    runs.notifier_id,
    runs.unmet,
    runs.expires_after_seconds,
    runs.begin_by
   FROM runs
UNION ALL
 SELECT history.id,
    history.scheduled_for,
    history.schedule_uid,
    history.schedule_version,
    history.schedule_id,
    history.trigger,
    history.status,
    history.lane,
    history.priority,
    history.due_at,
    history.attempts,
    history.failures,
    history.recoveries,
    history.coalesced,
    history.coalesced_from,
    history.claimed_by,
    history.claimed_at,
    history.first_claimed_at,
    history.lost_at,
    history.recovered_at,
    history.in_doubt_until,
    history.attempt_in_doubt,
    history.retried_after,
    history.lookups,
    history.handoff_started_at,
    history.handed_off_at,
    history.lateness_ms,
    history.execution_id,
    history.result_status_code,
    history.result_body,
    history.error,
    history.own_payload,
    history.key,
    history.overlap_guarded,
    history.parent_run_id,
    history.open_dependencies,
    history.on_dependency_failure,
    history.has_dependents,
    history.expires_at,
    history.lease_seconds,
    history.worker_id,
    history.progress,
    history.attempt_log,
    history.created_at,
    history.updated_at,
    history.reason,
    history.finished_at,
    history.limit_id,
    history.admitted_at,
    history.outcome_watched,
    history.notifier_id,
    history.unmet,
    history.expires_after_seconds,
    history.begin_by
   FROM history;

CREATE OR REPLACE FUNCTION public.firelock_create_day(parent text, day date)
 RETURNS void
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'public', 'pg_temp'
AS $function$
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
$function$;

CREATE OR REPLACE FUNCTION public.firelock_drop_day(parent text, day date)
 RETURNS void
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'public', 'pg_temp'
AS $function$
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
$function$;
