CREATE TABLE "held_runs" (
	"run_id" uuid PRIMARY KEY NOT NULL
);
--> statement-breakpoint
CREATE TABLE "maintenance" (
	"one" boolean PRIMARY KEY DEFAULT true NOT NULL,
	"since" timestamp (3) with time zone NOT NULL,
	"until" timestamp (3) with time zone,
	"reason" text,
	"dispatch" text NOT NULL,
	CONSTRAINT "maintenance_one_row" CHECK ("maintenance"."one")
);
