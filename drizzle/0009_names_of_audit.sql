ALTER TABLE "audit" ADD COLUMN "name" text COLLATE "C";--> statement-breakpoint
ALTER TABLE "audit" ADD COLUMN "scope" text[];