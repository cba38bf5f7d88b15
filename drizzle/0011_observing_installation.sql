CREATE TABLE "installation" (
	"one" boolean PRIMARY KEY DEFAULT true NOT NULL,
	"observing_since" timestamp (3) with time zone,
	"reason" text,
	"took_over_at" timestamp (3) with time zone,
	"took_over_since" timestamp (3) with time zone,
	"took_over_by" text,
	CONSTRAINT "installation_one_row" CHECK ("installation"."one")
);
--> statement-breakpoint
INSERT INTO "installation" DEFAULT VALUES;
