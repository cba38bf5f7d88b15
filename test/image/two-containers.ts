import assert from 'node:assert/strict';
import type postgres from 'postgres';
import { send } from '../support/calls.ts';
import { EVERY_SECOND } from '../support/fires.ts';
import type { Receiver } from '../support/receiver.ts';
import { HUNG_AFTER_MS, until } from '../support/until.ts';
import { type Container } from './container.ts';

const LEAST = 20;
const MOST = 5;

/** So long after the kill fires are looked at: longer than the others need to miss who was killed. */
const AFTERWARDS_MS = 8_000;

interface Row {
  id: string;
  schedule: string;
  at: Date;
  status: string;
}

/** `least-N` may arrive again, each attempt once; `most-N` never. Answers the first second of which every fire has to be there. */
export async function putFires(container: Container, receiver: Receiver): Promise<number> {
  const body = { cron: EVERY_SECOND, target: { type: 'http', url: `${receiver.url}/slow` } };
  for (let index = 0; index < LEAST; index += 1) await container.put(`least-${index}`, body);
  for (let index = 0; index < MOST; index += 1)
    await container.put(`most-${index}`, { ...body, delivery: 'atMostOnce' });
  return Math.ceil(Date.now() / 1000 + 1) * 1000;
}

/** Resolves while it waits for answers of targets. */
export async function isSending({ url }: Container): Promise<void> {
  await until(async () => {
    const { text } = await send(`${url}/metrics`, 'GET');
    return Number(/^firelock_in_flight_handoffs (\d+)/m.exec(text)?.[1]) > 0 || null;
  }, HUNG_AFTER_MS);
}

/** Resolves with the last second whose fires count, once these have ended. */
export async function outlivesKill(sql: postgres.Sql, receiver: Receiver, killedAt: number): Promise<number> {
  const last = Math.floor((killedAt + AFTERWARDS_MS) / 1000) * 1000;
  await until(() => receiver.arrivals.some(({ body }) => Date.parse(body.scheduledFor) > last) || null, HUNG_AFTER_MS);
  await until(async () => {
    const [open] = await sql`SELECT 1 FROM runs WHERE scheduled_for <= ${new Date(last)} LIMIT 1`;
    return open === undefined || null;
  }, HUNG_AFTER_MS);
  return last;
}

/** Every fire of these seconds is recorded once, and arrived as often as its delivery allows. */
export async function losesNothing(sql: postgres.Sql, receiver: Receiver, from: number, last: number) {
  const rows = await sql<Row[]>`
    SELECT id, schedule_id AS schedule, scheduled_for AS at, status FROM all_runs
    WHERE scheduled_for BETWEEN ${new Date(from)} AND ${new Date(last)}`;
  const recorded = Map.groupBy(rows, ({ schedule, at }) => `${schedule} ${at.getTime()}`);
  const arrivals = Map.groupBy(receiver.arrivals, ({ body }) => body.runId);
  const sent = ({ id }: Row) => arrivals.get(id) ?? [];
  const isLeast = ({ schedule }: Row) => schedule.startsWith('least-');
  const attemptsOf = (row: Row) => new Set(sent(row).map(({ body }) => body.attempt)).size;
  const due = dueMoments(from, last);
  const verdict = {
    unrecorded: due.filter((moment) => recorded.get(moment)?.length !== 1).length,
    lost: rows.filter((row) => isLeast(row) && (sent(row).length === 0 || row.status !== 'succeeded')).length,
    neitherSucceededNorUnknown: rows.filter(({ status }) => !['succeeded', 'unknown'].includes(status)).length,
    doubledAtMostOnce: rows.filter((row) => !isLeast(row) && sent(row).length > 1).length,
    moreThanAttempts: rows.filter((row) => sent(row).length > attemptsOf(row)).length,
  };
  const again = rows.filter((row) => sent(row).length > 1).length;
  const unknown = rows.filter(({ status }) => status === 'unknown').length;
  console.log(`     ${due.length} fires; sent again as allowed: ${again}; ended as unknown: ${unknown}`);
  const none = {
    unrecorded: 0,
    lost: 0,
    neitherSucceededNorUnknown: 0,
    doubledAtMostOnce: 0,
    moreThanAttempts: 0,
  };
  assert.deepEqual(verdict, none);
}

function dueMoments(from: number, last: number): string[] {
  const ids = [...Array(LEAST).keys()].map((index) => `least-${index}`);
  ids.push(...[...Array(MOST).keys()].map((index) => `most-${index}`));
  const moments: string[] = [];
  for (let at = from; at <= last; at += 1000) moments.push(...ids.map((id) => `${id} ${at}`));
  return moments;
}
