CREATE TABLE "zone_data" (
	"one" boolean PRIMARY KEY DEFAULT true NOT NULL,
	"version" text NOT NULL,
	"looked_through_at" timestamp (3) with time zone NOT NULL,
	CONSTRAINT "zone_data_one_row" CHECK ("zone_data"."one")
);
