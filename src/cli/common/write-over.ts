import type { Cli } from '../cli.ts';
import { type Answer, type Server, pathOf } from '../server/server-calls.ts';
import type { View } from '../terminal/output.ts';

/** A thing as it was read, to be written over. */
export interface Found<Body> {
  server: Server;
  path: string;
  /** Null: there is none. */
  before: Body | null;
  /** With them, a write fails (412) if it has changed meanwhile. */
  headers: Readonly<Record<string, string>>;
}

/** Writes a thing over what was read, and says what became of it. */
export async function writeOver<Body extends { version: number }>(
  cli: Cli,
  { noun, id }: { noun: string; id: string },
  write: (found: Found<Body>) => Promise<Answer>,
  besides: (after: Body, view: View) => string = () => '',
): Promise<void> {
  const server = cli.server();
  const path = pathOf(`${noun}s`, id);
  const found = await server.find(path);
  const before = found === null ? null : (found.body() as Body);
  const headers: Record<string, string> =
    found === null ? { 'if-none-match': '*' } : found.etag === null ? {} : { 'if-match': found.etag };
  const answer = await write({ server, path, before, headers });
  const after = answer.body() as Body;
  const done = before === null ? 'created' : before.version === after.version ? 'unchanged:' : 'changed';
  const said = `${done} ${noun} ${id}, version ${after.version}`;
  const output = cli.output();
  if (output.isJson) output.note(said);
  output.show(answer.text, (view) => [said + besides(after, view)]);
}
