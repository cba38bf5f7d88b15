import { callApi, sendGood } from '../../test/support/calls.ts';

const BATCH = 1000;
const DELETES_AT_ONCE = 4;

export type ScheduleItem = { id: string } & Record<string, unknown>;

/** Creates schedules over the API, a thousand a call, so many calls at once. */
export async function putSchedules(
  daemonUrl: string,
  items: readonly ScheduleItem[],
  callsAtOnce = 1,
): Promise<void> {
  let next = 0;
  const putInTurn = async () => {
    while (next < items.length) {
      const some = items.slice(next, (next += BATCH));
      await callApi(`${daemonUrl}/api/v1/schedules/batch`, { items: some });
    }
  };
  await Promise.all(Array.from({ length: callsAtOnce }, putInTurn));
}

export async function deleteSchedules(daemonUrl: string, ids: readonly string[]): Promise<void> {
  const waiting = [...ids];
  const deleteInTurn = async () => {
    for (let id = waiting.pop(); id !== undefined; id = waiting.pop()) {
      await sendGood(`${daemonUrl}/api/v1/schedules/${id}`, 'DELETE');
    }
  };
  await Promise.all(Array.from({ length: DELETES_AT_ONCE }, deleteInTurn));
}
