// @module-tag long
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Page } from 'playwright-core';
import { expect, it } from 'vitest';
import pages from '../../web/pages.json' with { type: 'json' };
import { startReceiver } from '../support/receiver.ts';
import { SECRET_KEYS } from '../support/secrets.ts';
import { type Stage, startStage } from './browser.ts';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const HOSTILE = `<script>alert(1)</script> \u202e evil \u202c ${'long'.repeat(240)}`;
const WIDTHS = [1280, 390];

it('every page, wide and narrow, light and dark, empty and full, overflows nowhere and is open to all', async (context) => {
  const stage = await startStage(context, { FIRELOCK_SECRET_KEYS: SECRET_KEYS });
  const faults = await lookAtAll(stage, { runId: '019aa000-0000-7000-8000-000000000000' });
  const receiver = await startReceiver((_arrival, response) => {
    response.statusCode = 400;
    response.end(HOSTILE);
  });
  const runId = await fill(stage, receiver.url);
  faults.push(...(await lookAtAll(stage, { runId })));
  await receiver.close();
  expect(faults).toEqual([]);
});

async function fill({ daemon }: Stage, url: string): Promise<string> {
  const call = async (method: string, path: string, body: unknown) => {
    const answer = await daemon.call(method, `/api/v1${path}`, body);
    if (answer.status >= 300) throw new Error(`${method} ${path}: ${JSON.stringify(answer.body)}`);
    return answer.body as { id: string };
  };
  const target = { type: 'http', url, headers: { 'x-note': HOSTILE.replace(/[^ -~]/g, '') } };
  const at = { exclude: { calendars: ['holidays'] }, limit: 'warehouse', target };
  const text = { template: JSON.stringify({ text: HOSTILE, of: '{{scheduleId}}' }) };
  const outcome = { succeed: ['3xx'], fail: [400], require: { pointer: `/${HOSTILE}`, equals: HOSTILE } };
  await call('PUT', '/calendars/holidays', { description: HOSTILE, dates: ['2031-12-24'] });
  await call('PUT', '/limits/warehouse', { description: HOSTILE, maxRunning: 2 });
  await call('PUT', '/connections/warehouse', {
    ...{
      description: HOSTILE,
      url: `https://127.0.0.1:9/${'long'.repeat(240)}`,
      headers: { ['x'.repeat(60)]: 'a' },
    },
    auth: {
      type: 'oauth2',
      tokenUrl: 'https://127.0.0.1:9/token',
      clientId: 'long'.repeat(240),
      clientSecret: 'a',
    },
  });
  await call('PUT', '/notifiers/team', {
    ...{ description: HOSTILE, filter: { ids: ['x'.repeat(128)], label: [`team:${'long'.repeat(60)}`] } },
    channel: { type: 'webhook', target: { ...target, url: `https://127.0.0.1:9/${'long'.repeat(240)}` } },
  });
  await call('PUT', '/schedules/nightly', {
    cron: '*/5 * * * *',
    timezone: 'America/Argentina/ComodRivadavia',
    description: HOSTILE,
    labels: { team: HOSTILE.slice(0, 200), ['k'.repeat(60)]: '' },
    payload: { note: HOSTILE, big: 1 },
    ...at,
    target: { ...target, body: text, outcome },
  });
  await call('PUT', `/schedules/${'x'.repeat(128)}`, { everySeconds: 1, ...at });
  await call('POST', '/runs', { target: { type: 'pull', queue: 'q'.repeat(128) } });
  await call('POST', '/maintenance', { on: true, reason: HOSTILE });
  const fired = await call('POST', '/schedules/nightly/fire', {});
  return fired.id;
}

/** At each page once: what is wrong with it. */
async function lookAtAll({ open }: Stage, { runId }: { runId: string }): Promise<string[]> {
  const found: string[] = [];
  for (const width of WIDTHS) {
    // Pages of things that are not there say so.
    const { page, faults } = await open('/', { width, expected: [404] });
    for (const pattern of Object.values(pages)) {
      const path = pattern.replace('/runs/:id', `/runs/${runId}`).replace('/schedules/:id', '/schedules/nightly');
      await page.goto(new URL(page.url()).origin + path.replace('/:id', '/holidays'));
      await page.locator('main h1').first().waitFor();
      await page.locator('[aria-busy=true]').first().waitFor({ state: 'detached' });
      found.push(...(await lookAt(page)).map((fault) => `${path}, ${width} wide: ${fault}`));
    }
    found.push(...faults);
    await page.context().close();
  }
  return found;
}

async function lookAt(page: Page): Promise<string[]> {
  const found = await overflowing(page);
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
    found.push(...(await inaccessible(page)).map((fault) => `${colorScheme}: ${fault}`));
  }
  return found;
}

/** What is wider than the window, though it does not scroll by itself. */
function overflowing(page: Page): Promise<string[]> {
  return page.evaluate<string[]>(`(() => {
    const { clientWidth, scrollWidth } = document.documentElement;
    if (scrollWidth <= clientWidth) return [];
    const wide = [...document.querySelectorAll('body *')].filter(
      (element) => element.getBoundingClientRect().right > clientWidth + 1 && !element.closest('.table'),
    );
    return wide.slice(0, 3).map((element) => 'overflows: ' + element.tagName + '.' + element.className);
  })()`);
}

async function inaccessible(page: Page): Promise<string[]> {
  // Evaluated by the driver, which the pages' policy does not bind.
  await page.evaluate(AXE);
  const violations = await page.evaluate<{ id: string; impact: string; nodes: { html: string }[] }[]>(
    `axe.run().then(({ violations }) => violations)`,
  );
  return violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .map(({ id, nodes }) => `${id}: ${nodes[0]?.html ?? ''}`);
}
