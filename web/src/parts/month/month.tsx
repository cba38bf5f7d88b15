import { useId, useState } from 'preact/hooks';
import type { ExplainedDay } from '../../../../clients/typescript/src/generated/types.gen.ts';
import { startOfMonth } from '../../state/local-time.ts';
import { usePoll } from '../../state/poll.ts';
import './month.css';
import { monthName, notesOf, timesOf, weeksOf, within, withinMonth, wordsOf } from './month-days.ts';

const WEEKDAYS = ['Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday', 'Sunday'];
const SELDOM = { everyMs: 60_000, keep: true };
const SHOWN_TIMES = 3;

interface Props {
  /** Of the month that is shown first; undefined: no rules of days are given. */
  days: readonly ExplainedDay[] | undefined;
  zone: string;
  /** What the days are about: another text is another question. */
  about: string;
  /** The days of the month in which a moment lies. */
  ask: (from: string, signal: AbortSignal) => Promise<readonly ExplainedDay[] | undefined>;
  startAt?: string;
  endAt?: string;
}

/** What fires on which day of a month, and why not on the others: in the daemon's words. */
export function Month({ days, zone, about, ask, startAt = '', endAt = '' }: Props) {
  const [chosen, setChosen] = useState<string | null>(null);
  const heading = useId();
  const { data, problem, isStale } = usePoll(
    `month ${chosen ?? ''} ${about}`,
    (signal) => (chosen === null ? Promise.resolve(undefined) : ask(withinMonth(chosen), signal)),
    SELDOM,
  );
  const [first] = days ?? [];
  if (!days || !first) return null;
  const shown = within((chosen === null ? days : data) ?? [], startAt, endAt);
  const month = chosen ?? first.date;
  const turn = (months: number): void => {
    const next = startOfMonth(month, months);
    setChosen(next === first.date ? null : next);
  };
  return (
    <section class="card month-card" aria-labelledby={heading}>
      <h2 id={heading}>Which days fire</h2>
      <div class="bar">
        <button type="button" aria-label="Previous month" onClick={() => turn(-1)}>
          ‹
        </button>
        <b aria-live="polite">{monthName(month)}</b>
        <button type="button" aria-label="Next month" onClick={() => turn(1)}>
          ›
        </button>
        <span class="quiet">{zone}</span>
      </div>
      {problem && <p class="doubt">{problem.message}</p>}
      {shown.length > 0 && <Weeks days={shown} isStale={chosen !== null && isStale} zone={zone} />}
    </section>
  );
}

function Weeks({ days, isStale, zone }: { days: readonly ExplainedDay[]; isStale: boolean; zone: string }) {
  return (
    <>
      <table class={`month ${isStale ? 'stale' : ''}`}>
        <caption class="unseen">
          {monthName(days[0]?.date ?? '')}, {zone}
        </caption>
        <thead>
          <tr>
            {WEEKDAYS.map((name) => (
              <th key={name} scope="col">
                <abbr title={name}>{name.slice(0, 3)}</abbr>
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {weeksOf(days).map((week, index) => (
            <tr key={index}>
              {week.map((day, weekday) => (day ? <Day key={day.date} day={day} /> : <td key={weekday} />))}
            </tr>
          ))}
        </tbody>
      </table>
      <ul class="month-notes">
        {notesOf(days).map((note) => (
          <li key={note} class="user">
            {note}
          </li>
        ))}
      </ul>
    </>
  );
}

function Day({ day }: { day: ExplainedDay }) {
  const { date, verdict, more } = day;
  const times = timesOf(day);
  return (
    <td class={`d-${verdict}`}>
      <time dateTime={date}>{Number(date.slice(8))}</time>
      {times.slice(0, SHOWN_TIMES).map((time, index) => (
        <b key={index}>{time}</b>
      ))}
      {(more === true || times.length > SHOWN_TIMES) && <b>and more</b>}
      {wordsOf(day).map((word) => (
        <span key={word}>{word}</span>
      ))}
    </td>
  );
}
