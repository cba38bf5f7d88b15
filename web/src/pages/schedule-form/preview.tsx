import { useEffect, useState } from 'preact/hooks';
import { ApiProblem, type Fault, call } from '../../api/http.ts';
import type { PreviewFiresResponse } from '../../../../clients/typescript/src/generated/types.gen.ts';
import { Month } from '../../parts/month/month.tsx';
import { Ago } from '../../parts/time.tsx';
import { MY_ZONE, timeText } from '../../state/zone.ts';
import { type Draft, bodyOf } from './draft.ts';

const TYPED_FOR_MS = 300;
const SHOWN = 8;

type Fire = PreviewFiresResponse['items'][number];

export interface Previewed {
  /** What was asked; null: nothing was answered. */
  request: Record<string, unknown> | null;
  /** What the daemon says of it; null: nothing yet, or it is wrong. */
  answer: PreviewFiresResponse | null;
  /** Fires that the excluded days take away, among those shown. */
  excluded: readonly Fire[];
  faults: readonly Fault[];
  refusal: string | null;
}

const NOTHING: Previewed = { request: null, answer: null, excluded: [], faults: [], refusal: null };

/** Asks the daemon when the draft would fire, once the user has not typed for a moment. A later question ends an earlier one. */
export function usePreview(draft: Draft): Previewed {
  const [state, setState] = useState<Previewed>(NOTHING);
  const request = requestOf(draft);
  const key = JSON.stringify(request);
  useEffect(() => {
    if (request === null) {
      setState(NOTHING);
      return;
    }
    const asked = new AbortController();
    const timer = setTimeout(() => {
      void preview(request, asked.signal).then((previewed) => {
        if (previewed && !asked.signal.aborted) setState(previewed);
      });
    }, TYPED_FOR_MS);
    return () => {
      clearTimeout(timer);
      asked.abort();
    };
  }, [key]);
  return state;
}

/** Null: it cannot be asked. */
function requestOf(draft: Draft): Record<string, unknown> | null {
  const isTyped = draft.kind === 'cron' ? draft.cron.some((one) => one !== '') : draft.everySeconds !== '';
  if (!isTyped || draft.kind === 'at' || draft.kind === 'after') return null;
  const { cron, everySeconds, timezone, exclude, onExcluded, every, pick } = bodyOf(draft, null);
  const timing = { cron, everySeconds, timezone, exclude, onExcluded, every, pick };
  const isId = /^[A-Za-z0-9][\w.-]{0,127}$/.test(draft.id);
  const start = Date.parse(draft.startAt);
  // A preview tells what comes strictly after a moment.
  const from = start > Date.now() ? new Date(start - 1).toISOString() : undefined;
  return { ...timing, count: SHOWN, from, ...(isId && { id: draft.id }) };
}

/** Undefined: there was no answer, or it is no longer wanted. */
async function preview(request: Record<string, unknown>, signal: AbortSignal): Promise<Previewed | undefined> {
  const ask = (body: unknown) => call<PreviewFiresResponse>('POST', '/preview', { body, signal });
  try {
    const answer = await ask(request);
    // What would be picked if nothing were excluded are other days, which nothing has taken away.
    const isWhole = request['exclude'] === null || request['pick'] !== null;
    const all = isWhole ? answer : await ask({ ...request, exclude: null });
    const made = new Set(answer.items.map(({ fireAt }) => fireAt));
    const excluded = all.items.filter(({ fireAt }) => !made.has(fireAt));
    return { request, answer, excluded, faults: [], refusal: null };
  } catch (error) {
    if (!(error instanceof ApiProblem)) return undefined;
    return { ...NOTHING, faults: error.faults, refusal: error.message };
  }
}

/** What the days of a month are, by the definition that was previewed. */
export function PreviewedMonth({ draft, previewed }: { draft: Draft; previewed: Previewed }) {
  const { request, answer } = previewed;
  const ask = async (from: string, signal: AbortSignal) => {
    const body = { ...request, from, count: 1 };
    return (await call<PreviewFiresResponse>('POST', '/preview', { body, signal })).days;
  };
  const { startAt, endAt } = draft;
  return (
    <Month
      {...{ days: answer?.days, zone: draft.timezone || 'UTC', ask, startAt, endAt }}
      about={JSON.stringify(request)}
    />
  );
}

/** In the daemon's words, and when that is: in the schedule's zone and in the user's. */
export function Preview({ draft, previewed }: { draft: Draft; previewed: Previewed }) {
  const { answer, excluded, faults, refusal } = previewed;
  const zone = draft.timezone || 'UTC';
  return (
    <section class="card preview" aria-labelledby="preview" aria-live="polite">
      <h2 id="preview">When it fires</h2>
      {draft.kind === 'at' && draft.at !== '' && <Once at={draft.at} zone={zone} />}
      {draft.kind === 'after' && (
        <p>
          Whenever a run of {draft.afterId === '*' ? 'any schedule' : <b class="user">{draft.afterId || '…'}</b>} ends
          as {draft.afterOn.join(', ') || '…'}.
        </p>
      )}
      {answer && (
        <>
          <p class="said user">{answer.description}</p>
          {answer.assumes !== undefined && <p class="quiet">{answer.assumes}</p>}
          {draft.kind === 'everySeconds' && (
            <p class="quiet">Counted from now; the schedule counts from its start, or from its creation.</p>
          )}
          <Fires fires={answer.items} excluded={excluded} zone={zone} endAt={draft.endAt} />
        </>
      )}
      {refusal !== null && (
        <ul class="faults">
          {faults.length === 0 && <li>{refusal}</li>}
          {faults.map(({ path, message }) => (
            <li key={path + message}>
              {path.slice(1)}: {message}
            </li>
          ))}
        </ul>
      )}
      {!answer && refusal === null && draft.kind !== 'after' && draft.kind !== 'at' && (
        <p class="quiet">Say when it fires, and see here what that means.</p>
      )}
    </section>
  );
}

function Once({ at, zone }: { at: string; zone: string }) {
  return (
    <p>
      Once, at {timeText(at, zone)} ({zone}), which is {timeText(at, MY_ZONE)} for you, <Ago at={at} />.
    </p>
  );
}

interface FiresProps {
  fires: readonly Fire[];
  excluded: readonly Fire[];
  zone: string;
  endAt: string;
}

function Fires({ fires, excluded, zone, endAt }: FiresProps) {
  const end = endAt === '' ? Infinity : Date.parse(endAt);
  const left = new Set(excluded.map(({ fireAt }) => fireAt));
  const all = [...fires, ...excluded]
    .filter(({ fireAt }) => Date.parse(fireAt) < end)
    .sort((a, b) => Date.parse(a.fireAt) - Date.parse(b.fireAt))
    .slice(0, SHOWN);
  if (all.length === 0) return <p class="doubt">Nothing fires before its last moment.</p>;
  return (
    <ol class="fires">
      {all.map(({ fireAt, note }) => (
        <li key={fireAt}>
          <span class={left.has(fireAt) ? 'struck' : ''}>{timeText(fireAt, zone)}</span>{' '}
          <span class="quiet">
            (<Ago at={fireAt} isNext />)
          </span>
          {zone !== MY_ZONE && <div class="quiet">{timeText(fireAt, MY_ZONE)} for you</div>}
          {note !== undefined && <div class="doubt">{note}</div>}
          {left.has(fireAt) && <div class="doubt">excluded: it does not fire on this day</div>}
        </li>
      ))}
    </ol>
  );
}
