CREATE TABLE "connections" (
	"id" text COLLATE "C" PRIMARY KEY NOT NULL,
	"uid" uuid NOT NULL,
	"description" text,
	"url" text NOT NULL,
	"definition" jsonb NOT NULL,
	"version" integer NOT NULL,
	"updated_at" timestamp (3) with time zone NOT NULL,
	"placed_at" timestamp (3) with time zone NOT NULL
);
