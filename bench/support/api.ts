/** Asks the daemon over HTTP, as any client does; with a body it is a POST. */
export async function callApi(url: string, body?: object): Promise<unknown> {
  const response = await fetch(url, {
    ...(body && {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    }),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${url} answered ${response.status}: ${text.slice(0, 500)}`);
  return JSON.parse(text);
}

interface HistoryRun {
  id: string;
  scheduleId: string | null;
  scheduledFor: string;
  status: string;
  attempts: number;
}

const PAGE = 500;

/** All runs of the period (wall-clock ms, its end excluded). Throws if any has not succeeded at its first attempt. */
export async function readGoodRuns(url: string, from: number, until: number): Promise<HistoryRun[]> {
  const runs: HistoryRun[] = [];
  const period = `from=${new Date(from).toISOString()}&to=${new Date(until).toISOString()}`;
  let cursor: string | null = null;
  do {
    const after: string = cursor === null ? '' : `&cursor=${encodeURIComponent(cursor)}`;
    const page = (await callApi(`${url}/api/v1/runs?${period}&limit=${PAGE}${after}`)) as {
      items: HistoryRun[];
      nextCursor: string | null;
    };
    for (const run of page.items) {
      if (run.status !== 'succeeded' || run.attempts !== 1) {
        const whole = await callApi(`${url}/api/v1/runs/${run.id}`);
        throw new Error(`not one good attempt: ${JSON.stringify(whole)}`);
      }
      runs.push(run);
    }
    cursor = page.nextCursor;
  } while (cursor !== null);
  return runs;
}
