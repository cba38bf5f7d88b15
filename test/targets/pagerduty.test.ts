import { expect, onTestFinished, test } from 'vitest';
import type { HttpTarget, PagerDutyTarget } from '../../src/core/schedules/schedule.ts';
import { systemClock } from '../../src/runtime/clock.ts';
import { createHttpTarget } from '../../src/targets/http.ts';
import { createPagerDutyTarget } from '../../src/targets/pagerduty.ts';
import { targetAt } from '../support/targets.ts';
import { attemptOf, never, receive } from './receivers.ts';

function kindAndTarget(url: string, more: Partial<HttpTarget<string>> = {}) {
  const http = createHttpTarget({ clock: systemClock, version: '1.2.3', connectionsPerOrigin: 1 });
  onTestFinished(() => http.close());
  const target = { ...targetAt(url), ...more } as HttpTarget<string>;
  const paged: PagerDutyTarget<string> = { type: 'pagerduty', target, routingKey: 'R"1' };
  return { kind: createPagerDutyTarget(http), paged };
}

const EVENT = '{ "event_action": "resolve", "dedup_key": "4711", "n": 1.000000000000000001 }';

test('the event is sent with the routing key, and is otherwise as it was written', async () => {
  const { url, arrivals } = await receive((_, response) =>
    response.writeHead(202).end('{"status":"success"}'),
  );
  const { kind, paged } = kindAndTarget(url, { headers: { 'X-Key': 'k' } });
  const attempt = attemptOf({ trigger: 'notify', scheduleId: null, runName: null, payload: EVENT });
  expect(await kind.deliver(paged, attempt, never)).toMatchObject({ kind: 'accepted', statusCode: 202 });
  const [arrival] = arrivals;
  expect(arrival?.body).toBe(
    `{"routing_key":"R\\"1","event_action": "resolve", "dedup_key": "4711", "n": 1.000000000000000001 }`,
  );
  expect(arrival?.headers).toMatchObject({
    'x-key': 'k',
    'webhook-id': attempt.runId,
    'content-type': 'application/json',
  });
});

test('its answers are judged as those of any HTTP target', async () => {
  const { url } = await receive((_, response) => response.writeHead(429, { 'retry-after': '7' }).end());
  const { kind, paged } = kindAndTarget(url);
  const attempt = attemptOf({ trigger: 'notify', payload: '{}' });
  expect(await kind.deliver(paged, attempt, never)).toMatchObject({
    kind: 'transient',
    retryAfterSeconds: 7,
  });
});
