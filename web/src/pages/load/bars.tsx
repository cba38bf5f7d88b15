import { clockText, timeText } from '../../state/zone.ts';
import type { Bar } from './counts.ts';

const STEP = 10;
const HEIGHT = 150;
const TICK_EVERY = 12;

interface Props {
  bars: readonly Bar[];
  zone: string;
  onChoose: (bar: Bar) => void;
}

/** The next day; a click on a bar shows what is behind it. Who uses the keyboard finds the same under the herds. */
export function Bars({ bars, zone, onChoose }: Props) {
  const most = Math.max(1, ...bars.map(({ fires }) => fires));
  const width = bars.length * STEP;
  return (
    <>
      <svg
        class="bars"
        viewBox={`0 0 ${width} ${HEIGHT}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={`Fires of the next 24 hours, up to ${most.toLocaleString('en')} in 15 minutes`}
      >
        {bars.map((bar, index) => {
          // What is little next to a herd is seen all the same.
          const height = bar.fires === 0 ? 0 : Math.max(2, (HEIGHT * bar.fires) / most);
          return (
            <g key={bar.from} onClick={() => onChoose(bar)}>
              <rect class="behind" x={index * STEP} y={0} width={STEP} height={HEIGHT} />
              <rect x={index * STEP + 1} y={HEIGHT - height} width={STEP - 2} height={height} />
              <title>{`${timeText(bar.from, zone)}: ${bar.fires.toLocaleString('en')} fires`}</title>
            </g>
          );
        })}
      </svg>
      <div class="ticks quiet" aria-hidden="true">
        {bars
          .filter((_, index) => index % TICK_EVERY === 0)
          .map(({ from }) => (
            <span key={from}>{clockText(from, zone)}</span>
          ))}
      </div>
    </>
  );
}
