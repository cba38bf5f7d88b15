import { useEffect, useRef } from 'preact/hooks';
import type { Options } from 'uplot';
import { isDark } from '../../state/theme.ts';
import { clockText, dayText, shownZone } from '../../state/zone.ts';

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
const DAY_S = 86_400;
/** 1, 2, 5, 10, 20, 50 and so on. */
const WHOLE_STEPS = Array.from({ length: 9 }, (_, digits) =>
  [1, 2, 5].map((step) => step * 10 ** digits),
).flat();

/** Curves over time. Its library is loaded when the first of them is looked at. */
export function Curve({ label, at, series, text, zone, whole = false }: Props) {
  const frame = useRef<HTMLDivElement>(null);
  const inZone = shownZone(zone);
  const told = JSON.stringify([at, series, inZone]);
  useEffect(() => {
    const element = frame.current;
    if (!element || at.length === 0) return;
    let destroy = (): void => undefined;
    let isGone = false;
    void import('./curve-library.ts').then(({ draw }) => {
      if (!isGone)
        destroy = draw(element, optionsOf(element, { at, series, text, label, whole }, inZone), at, series);
    });
    return () => {
      isGone = true;
      destroy();
    };
  }, [told, isDark.value]);
  return (
    <figure class="curve" aria-label={`${label}, in ${inZone}`}>
      <div ref={frame} aria-hidden="true" />
      <figcaption>
        {series.map(({ name, tone, values }) => (
          <span key={name} class="legend">
            <svg viewBox="0 0 10 10" aria-hidden="true">
              <rect width="10" height="10" rx="2" class={tone} />
            </svg>
            {name}: {latestText(values, text)}
          </span>
        ))}
      </figcaption>
    </figure>
  );
}

function latestText(values: readonly (number | null)[], text: (value: number) => string): string {
  const latest = values.findLast((value) => value !== null);
  return latest === undefined ? '–' : text(latest);
}

function optionsOf(
  element: HTMLElement,
  { at, series, text, whole }: Props,
  zone: string,
): Omit<Options, 'plugins'> {
  const quiet = colourOf(element, '--quiet');
  const line = colourOf(element, '--line');
  const isLong = (at.at(-1) ?? 0) - (at[0] ?? 0) > 2 * DAY_S;
  const axis = {
    stroke: quiet,
    font: '11px system-ui, sans-serif',
    grid: { stroke: line, width: 1 },
    ticks: { show: false },
  };
  const written = (seconds: number) =>
    isLong ? dayText(seconds * 1000, zone).slice(5) : clockText(seconds * 1000, zone);
  return {
    width: element.clientWidth,
    height: HEIGHT,
    padding: [8, 10, 0, 0],
    legend: { show: false },
    cursor: { show: false },
    scales: { y: { range: (_plot, _low, high) => [0, high > 0 ? high * 1.1 : 1] } },
    axes: [
      { ...axis, size: 26, space: 60, values: (_plot, splits) => splits.map(written) },
      {
        ...axis,
        ...(whole === true && { incrs: WHOLE_STEPS }),
        size: 58,
        values: (_plot, splits) => splits.map(text),
      },
    ],
    series: [
      {},
      ...series.map(({ name, tone }) => ({
        label: name,
        stroke: colourOf(element, `--${tone}`),
        width: 1.5,
        spanGaps: false,
        points: { show: false },
      })),
    ],
  };
}

/** A canvas knows no custom properties: the browser works out what one means here and now. */
function colourOf(element: HTMLElement, property: string): string {
  const probe = document.createElement('i');
  probe.style.color = `var(${property})`;
  element.append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}
