// What the package `firelock-client` is for those who import it.
export { type ClientOptions, createClient, newIdempotencyKey } from './client.ts';
export { eachItem } from './items.ts';
export { JsonText } from './json-text.ts';
export { type Fault, Problem } from './problem.ts';
export type { CallOptions, EditedSchedule, Input } from './operation.ts';
export type { Firelock } from './generated/operations.gen.ts';
export type * from './generated/types.gen.ts';
