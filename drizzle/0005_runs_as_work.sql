CREATE TABLE "queue_workers" (
	"queue" text COLLATE "C" NOT NULL,
	"worker_id" text COLLATE "C" NOT NULL,
	"seen_at" timestamp (3) with time zone NOT NULL,
	CONSTRAINT "queue_workers_queue_worker_id_pk" PRIMARY KEY("queue","worker_id")
);
--> statement-breakpoint
CREATE TABLE "run_dependencies" (
	"run_id" uuid NOT NULL,
	"scheduled_for" timestamp (3) with time zone NOT NULL,
	"depends_on" uuid NOT NULL,
	"depends_on_scheduled_for" timestamp (3) with time zone NOT NULL,
	"position" smallint NOT NULL,
	"counted_at" timestamp (3) with time zone,
	CONSTRAINT "run_dependencies_depends_on_run_id_pk" PRIMARY KEY("depends_on","run_id")
);
--> statement-breakpoint
ALTER TABLE "runs" ADD COLUMN "first_claimed_at" timestamp (3) with time zone;--> statement-breakpoint
ALTER TABLE "runs" ADD COLUMN "doubted_attempt" integer;--> statement-breakpoint
ALTER TABLE "runs" ADD COLUMN "retried_after" integer;--> statement-breakpoint
ALTER TABLE "runs" ADD COLUMN "open_dependencies" integer;--> statement-breakpoint
ALTER TABLE "runs" ADD COLUMN "on_dependency_failure" text;--> statement-breakpoint
ALTER TABLE "runs" ADD COLUMN "failed_dependency" uuid;--> statement-breakpoint
ALTER TABLE "runs" ADD COLUMN "has_dependents" boolean DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE "runs" ADD COLUMN "expires_at" timestamp (3) with time zone;--> statement-breakpoint
ALTER TABLE "runs" ADD COLUMN "lease_seconds" double precision;--> statement-breakpoint
ALTER TABLE "runs" ADD COLUMN "worker_id" text;--> statement-breakpoint
ALTER TABLE "runs" ADD COLUMN "progress" double precision;--> statement-breakpoint
CREATE INDEX "run_dependencies_of" ON "run_dependencies" USING btree ("run_id","position");--> statement-breakpoint
CREATE INDEX "run_dependencies_open" ON "run_dependencies" USING btree ("depends_on","run_id") WHERE counted_at IS NULL;--> statement-breakpoint
CREATE INDEX "runs_running" ON "runs" USING btree ("expires_at") WHERE status = 'running';--> statement-breakpoint
CREATE INDEX "runs_waiting_for_others" ON "runs" USING btree ("failed_dependency") WHERE status = 'waiting' AND open_dependencies IS NOT NULL;