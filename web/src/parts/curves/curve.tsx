import { useEffect, useRef, useState } from 'preact/hooks';
import { offsetAt } from '../../state/local-time.ts';
import { clockText, dayText, shownZone, timeText } from '../../state/zone.ts';
import { timeTicks, valueTicks } from './axes.ts';
import './curve.css';

interface Series {
  name: string;
  /** One of the tones of a status: `good`, `bad`, `busy`, `doubt`, `calm`. */
  tone: string;
  values: readonly (number | null)[];
}

interface Props {
  label: string;
  /** Unix seconds, ascending. */
  at: readonly number[];
  series: readonly Series[];
  /** How a value is written. */
  text: (value: number) => string;
  zone?: string | null;
  /** Counts: the axis has whole numbers only. */
  whole?: boolean;
}

const HEIGHT = 170;
const LEFT = 52;
const RIGHT = 8;
const TOP = 8;
const BOTTOM = 22;
/** Between two moments on the axis. */
const APART = 70;
const DAY_S = 86_400;

/** Curves over time; where the mouse points, the legend says what was. */
export function Curve({ label, at, series, text, zone, whole = false }: Props) {
  const frame = useRef<HTMLElement>(null);
  const [width, setWidth] = useState(0);
  const [pointed, setPointed] = useState<number | null>(null);
  useEffect(() => {
    const sized = new ResizeObserver(() => setWidth(frame.current?.clientWidth ?? 0));
    if (frame.current) sized.observe(frame.current);
    return () => sized.disconnect();
  }, []);
  const inZone = shownZone(zone);
  const [from = 0, to = 0] = [at[0], at.at(-1)];
  const room = Math.max(1, width - LEFT - RIGHT);
  const ticks = valueTicks(Math.max(0, ...series.flatMap(({ values }) => values.map(Number))), whole);
  const x = (seconds: number) => LEFT + (room * (seconds - from)) / (to - from || 1);
  const y = (value: number) => HEIGHT - BOTTOM - ((HEIGHT - TOP - BOTTOM) * value) / (ticks.at(-1) ?? 1);
  const moments = timeTicks(from, to, room / APART, offsetAt(from * 1000, inZone) / 1000);
  const written = (seconds: number) =>
    to - from > 2 * DAY_S ? dayText(seconds * 1000, inZone).slice(5) : clockText(seconds * 1000, inZone);
  const point = ({ offsetX }: MouseEvent) => {
    const nearest = at.toSorted((a, b) => Math.abs(x(a) - offsetX) - Math.abs(x(b) - offsetX))[0];
    setPointed(nearest === undefined ? null : at.indexOf(nearest));
  };
  const pointedAt = pointed === null ? undefined : at[pointed];
  return (
    <figure class="curve" ref={frame} aria-label={`${label}, in ${inZone}`}>
      <svg height={HEIGHT} aria-hidden="true" onMouseMove={point} onMouseLeave={() => setPointed(null)}>
        {ticks.map((value) => (
          <g key={value} class="grid">
            <path d={`M${LEFT} ${y(value)}H${width - RIGHT}`} />
            <text x={LEFT - 6} y={y(value) + 4} text-anchor="end">
              {text(value)}
            </text>
          </g>
        ))}
        {moments.map((seconds) => (
          <text key={seconds} x={x(seconds)} y={HEIGHT - 5} text-anchor="middle">
            {written(seconds)}
          </text>
        ))}
        {pointedAt !== undefined && <path class="calm" d={`M${x(pointedAt)} ${TOP}V${HEIGHT - BOTTOM}`} />}
        {series.map(({ name, tone, values }) => (
          <path key={name} class={tone} d={lineOf(values, (value, index) => `${x(at[index] ?? 0)} ${y(value)}`)} />
        ))}
      </svg>
      <figcaption>
        {series.map(({ name, tone, values }) => (
          <span key={name} class="legend">
            <svg viewBox="0 0 10 10" aria-hidden="true">
              <rect width="10" height="10" rx="2" class={tone} />
            </svg>
            {name}: {saidOf(pointed === null ? values.findLast((value) => value !== null) : values[pointed], text)}
          </span>
        ))}
        {pointedAt !== undefined && <span class="quiet">{timeText(pointedAt * 1000, inZone)}</span>}
      </figcaption>
    </figure>
  );
}

function saidOf(value: number | null | undefined, text: Props['text']): string {
  return value === null || value === undefined ? '–' : text(value);
}

/** With a gap where there is no value; one that stands alone is a dot. */
function lineOf(values: Series['values'], place: (value: number, index: number) => string): string {
  return values
    .map((value, index) => {
      if (value === null) return '';
      const goesOn = index > 0 && values[index - 1] !== null;
      return `${goesOn ? 'L' : 'M'}${place(value, index)}${goesOn ? '' : 'h0'}`;
    })
    .join('');
}
