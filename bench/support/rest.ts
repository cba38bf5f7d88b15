/** The daemon's API, as any client has it. */

const BATCH = 1000;

export async function getJson(url: string): Promise<unknown> {
  return answered(url, await fetch(url));
}

export async function postJson(url: string, body: object): Promise<unknown> {
  const headers = { 'content-type': 'application/json' };
  return answered(url, await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) }));
}

export type ScheduleItem = { id: string } & Record<string, unknown>;

/** Creates schedules, a thousand a call, so many calls at once. */
export async function putSchedules(
  daemonUrl: string,
  items: readonly ScheduleItem[],
  callsAtOnce = 1,
): Promise<void> {
  let next = 0;
  const putInTurn = async () => {
    while (next < items.length) {
      const some = items.slice(next, (next += BATCH));
      await postJson(`${daemonUrl}/api/v1/schedules/batch`, { items: some });
    }
  };
  await Promise.all(Array.from({ length: callsAtOnce }, putInTurn));
}

export async function deleteSchedules(daemonUrl: string, ids: readonly string[]): Promise<void> {
  const waiting = [...ids];
  const deleteInTurn = async () => {
    for (let id = waiting.pop(); id !== undefined; id = waiting.pop()) {
      const url = `${daemonUrl}/api/v1/schedules/${id}`;
      const response = await fetch(url, { method: 'DELETE' });
      await response.body?.cancel();
      if (!response.ok) throw new Error(`${url} answered ${response.status}`);
    }
  };
  await Promise.all(Array.from({ length: 4 }, deleteInTurn));
}

async function answered(url: string, response: Response): Promise<unknown> {
  const text = await response.text();
  if (!response.ok) throw new Error(`${url} answered ${response.status}: ${text.slice(0, 500)}`);
  return JSON.parse(text);
}
