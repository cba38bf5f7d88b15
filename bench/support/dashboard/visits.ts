import type { Page } from 'playwright-core';
import { callApi } from '../../../test/support/calls.ts';
import { BIG, DAILY, SMALL } from '../history/seed-history.ts';
import { median } from '../measures/statistics.ts';

/** A page of the dashboard, and what a user does there. */
export interface Visit {
  name: string;
  path: string;
  act?: (page: Page) => Promise<void>;
}

/** Every page, with the filters and views that people use. */
export async function visitsOf(daemonUrl: string): Promise<Visit[]> {
  const idOf = async (query: string) => {
    const { items } = (await callApi(`${daemonUrl}/api/v1/runs?limit=1&${query}`)) as {
      items: { id: string }[];
    };
    return items[0]?.id ?? '';
  };
  const press = (name: string) => (page: Page) => page.getByRole('button', { name, exact: true }).click();
  return [
    { name: 'overview, hour', path: '/' },
    { name: 'overview, day', path: '/', act: press('Day') },
    { name: 'overview, week', path: '/', act: press('Week') },
    { name: 'schedules', path: '/schedules', act: (page) => page.getByText('Next page').click() },
    ...['status=paused', 'status=error', 'late=true', 'label=team:team-7', 'label=customer:4711'].map((filter) => ({
      name: `schedules, ${filter}`,
      path: `/schedules?${filter}`,
    })),
    ...['q=job-9999', 'q=nowhere', 'q=customer 77', 'q=books&status=paused'].map((filter) => ({
      name: `schedules, ${filter}`,
      path: `/schedules?${filter}`,
    })),
    ...[BIG, SMALL, DAILY].flatMap((id) => [
      { name: `schedule ${id}`, path: `/schedules/${id}` },
      { name: `schedule ${id}, hour`, path: `/schedules/${id}?view=hour` },
      { name: `schedule ${id}, month`, path: `/schedules/${id}?view=month` },
    ]),
    { name: 'new schedule', path: '/schedules/new' },
    { name: 'edit schedule', path: `/schedules/${DAILY}/edit` },
    { name: 'runs', path: '/runs', act: (page) => page.getByText('Next page').click() },
    ...['status=failed', 'status=failed&since=24h', 'trigger=manual', 'label=team:team-7', 'label=kind:small'].map(
      (filter) => ({ name: `runs, ${filter}`, path: `/runs?${filter}` }),
    ),
    ...[BIG, DAILY].map((id) => ({ name: `runs of ${id}`, path: `/runs?scheduleId=${id}` })),
    { name: 'run that succeeded', path: `/runs/${await idOf(`scheduleId=${SMALL}&status=succeeded`)}` },
    { name: 'run that failed', path: `/runs/${await idOf('status=failed')}` },
    { name: 'load', path: '/load', act: lookAtHerd },
    ...['calendars', 'limits', 'maintenance', 'audit'].map((name) => ({ name, path: `/${name}` })),
    { name: 'audit, action=schedule.create', path: '/audit?action=schedule.create' },
    ...['job-5', 'nowhere', 'team:team-7', await idOf('status=failed')].map((text) => ({
      name: `search for ${text.length > 30 ? "a run's id" : text}`,
      path: '/maintenance',
      act: (page: Page) => searchFor(page, text),
    })),
  ];
}

async function lookAtHerd(page: Page): Promise<void> {
  await page.locator('.herds button').first().click();
}

async function searchFor(page: Page, text: string): Promise<void> {
  await page.keyboard.press('Control+k');
  await page.getByRole('combobox', { name: 'Search' }).fill(text);
}

export interface ListedPage {
  what: string;
  medianMs: number;
  worstMs: number;
}

const CALLS = 15;
const PAGES = 5;
const FILTERS = ['', '&status=active', '&status=paused', '&label=kind:daily', '&label=team:team-7', '&q=customer'];

/** The list of schedules with their last runs, warm: the first page, those that follow, and with filters. */
export async function askRecentRuns(daemonUrl: string): Promise<ListedPage[]> {
  const found: ListedPage[] = [];
  for (const filter of FILTERS) {
    const query = `schedules?recent=20${filter}`;
    let cursor: string | null = '';
    for (let page = 1; page <= PAGES && cursor !== null; page += 1) {
      const path = `${query}${cursor === '' ? '' : `&cursor=${cursor}`}`;
      const asked = await askSomeTimes(`${daemonUrl}/api/v1/${path}`);
      found.push({ what: `${query}, page ${page}`, ...asked.taken });
      cursor = asked.nextCursor;
    }
  }
  return found;
}

async function askSomeTimes(url: string) {
  const all: number[] = [];
  let answer: unknown;
  for (let call = 0; call <= CALLS; call += 1) {
    const startedAt = performance.now();
    answer = await callApi(url);
    if (call > 0) all.push(performance.now() - startedAt);
  }
  const { nextCursor } = answer as { nextCursor: string | null };
  return { taken: { medianMs: median(all), worstMs: Math.max(...all) }, nextCursor };
}
