import type { Day } from './counts.ts';

const CELL = 30;
const LEFT = 90;
const TOP = 20;

/** A row for each day, a column for each hour: the more fires, the stronger. */
export function Week({ days, zone }: { days: readonly Day[]; zone: string }) {
  const most = Math.max(1, ...days.flatMap(({ hours }) => hours.map((fires) => fires ?? 0)));
  const [width, height] = [LEFT + 24 * CELL, TOP + days.length * CELL];
  return (
    <div class="week" tabIndex={0} role="region" aria-label={`Fires by day and hour, ${zone}`}>
      <svg viewBox={`0 0 ${width} ${height}`} role="img" aria-label={saidOf(days, most)}>
        {Array.from({ length: 24 }, (_, hour) => (
          <text key={hour} x={LEFT + (hour + 0.5) * CELL} y={TOP - 6} text-anchor="middle">
            {hour}
          </text>
        ))}
        {days.map(({ day, hours }, row) => (
          <g key={day}>
            <text x={0} y={TOP + (row + 0.65) * CELL}>
              {day}
            </text>
            {hours.map((fires, hour) =>
              fires === null ? null : (
                <rect
                  key={hour}
                  x={LEFT + hour * CELL}
                  y={TOP + row * CELL}
                  width={CELL - 2}
                  height={CELL - 2}
                  rx={3}
                  fill-opacity={fires === 0 ? 0.06 : 0.15 + 0.85 * Math.sqrt(fires / most)}
                >
                  <title>{`${day} ${hour}:00 ${zone}: ${fires.toLocaleString('en')} fires`}</title>
                </rect>
              ),
            )}
          </g>
        ))}
      </svg>
    </div>
  );
}

function saidOf(days: readonly Day[], most: number): string {
  const busiest = days.find(({ hours }) => hours.includes(most));
  if (!busiest) return 'Nothing fires this week';
  return `The busiest hour is ${busiest.day} ${busiest.hours.indexOf(most)}:00, with ${most} fires`;
}
