/** What a worker uses of a run that it has claimed. */
export interface Claimed {
  id: string;
  /** `scheduleId@scheduledFor`; null: it is no planned fire. */
  name: string | null;
  scheduleId: string | null;
  scheduledFor: string;
  attempts: number;
  payloadFrom: 'schedule' | 'request';
  /** As the server wrote it: numbers have all their digits. Null: there is none. */
  payload: string | null;
}

/** The runs in the answer to a claim. @throws SyntaxError if it is not JSON */
export function claimedRuns(answer: string): Claimed[] {
  const { items = [] } = JSON.parse(answer) as { items?: Omit<Claimed, 'payload'>[] };
  const payloads = payloadTexts(answer);
  return items.map((run, index) => {
    const payload = payloads[index] ?? 'null';
    return { ...run, payload: payload === 'null' ? null : payload };
  });
}

/** A string, or a sign of the structure. */
const TOKEN = /"[^"\\]*(?:\\[^][^"\\]*)*"|[{}[\],:]/g;
/** Of the members of an item. */
const DEPTH = 3;

/** The source of each item's payload, in their order: parsing it would change digits, white space and escapes. */
function payloadTexts(answer: string): string[] {
  const texts: string[] = [];
  let depth = 0;
  let name = '';
  let from: number | null = null;
  for (const { 0: token, index } of answer.matchAll(TOKEN)) {
    if (token.startsWith('"')) name = token;
    else if (token === ':') {
      if (depth === DEPTH && name === '"payload"') from = index + 1;
    } else if (token === '{' || token === '[') depth += 1;
    else {
      if (depth === DEPTH && from !== null) {
        texts.push(answer.slice(from, index).trim());
        from = null;
      }
      if (token !== ',') depth -= 1;
    }
  }
  return texts;
}
