import { get } from '../../api/http.ts';
import type { Batch, WholeRun } from '../../../../clients/typescript/src/generated/types.gen.ts';
import { toneOf } from '../../parts/badge.tsx';
import { usePoll } from '../../state/poll.ts';
import { href } from '../../state/route.ts';
import { type Node, layoutOf } from './batch-layout.ts';

const MOST = 200;
const EVERY_MS = 5_000;
const [WIDTH, HEIGHT, GAP_X, GAP_Y, LETTERS] = [150, 36, 40, 8, 20];

/** All runs that were asked for together with this one, and what waits for what. */
export function BatchGraph({ run: { id, batchId } }: { run: WholeRun }) {
  const { data: batch } = usePoll(
    `batch ${batchId ?? ''}`,
    (signal) => (batchId === null ? Promise.resolve(null) : get<Batch>(`/batches/${batchId}`, {}, signal)),
    { everyMs: EVERY_MS },
  );
  if (!batch || batch.items.length < 2) return null;
  const { nodes, edges, columns, rows } = layoutOf(batch.items, id, MOST);
  const [width, height] = [columns * (WIDTH + GAP_X) - GAP_X + 2, rows * (HEIGHT + GAP_Y) - GAP_Y + 2];
  const more = batch.items.length - nodes.length;
  return (
    <section class="card">
      <h2>
        Batch <span class="user">{batch.name}</span>
      </h2>
      <div class="flow" tabIndex={0} role="region" aria-label="Runs of the batch">
        <svg width={width} height={height} viewBox={`-1 -1 ${width} ${height}`}>
          {edges.map(([from, to]) => (
            <path key={`${from.ref} ${to.ref}`} d={wayOf(from, to)} />
          ))}
          {nodes.map((node) => (
            <Box key={node.id} node={node} isThis={node.id === id} />
          ))}
        </svg>
      </div>
      <p class="quiet">
        {more > 0 && `and ${more} more; `}
        <a href={href('/runs', { batchId })}>all in a list</a>
      </p>
    </section>
  );
}

function Box({ node: { ref, id, status, column, row }, isThis }: { node: Node; isThis: boolean }) {
  const [x, y] = [column * (WIDTH + GAP_X), row * (HEIGHT + GAP_Y)];
  return (
    <a
      href={href(`/runs/${id}`)}
      class={`${toneOf(status)} ${isThis ? 'this' : ''}`}
      aria-label={`${ref}: ${status}`}
      aria-current={isThis ? 'true' : undefined}
    >
      <title>{ref}</title>
      <rect x={x} y={y} width={WIDTH} height={HEIGHT} rx="6" />
      <text x={x + 8} y={y + 15}>
        {ref.length > LETTERS ? `${ref.slice(0, LETTERS - 1)}…` : ref}
      </text>
      <text class="status" x={x + 8} y={y + 29}>
        {status}
      </text>
    </a>
  );
}

function wayOf(from: Node, to: Node): string {
  const y = ({ row }: Node) => row * (HEIGHT + GAP_Y) + HEIGHT / 2;
  const [x1, x2] = [from.column * (WIDTH + GAP_X) + WIDTH, to.column * (WIDTH + GAP_X)];
  const middle = (x1 + x2) / 2;
  return `M${x1} ${y(from)}C${middle} ${y(from)} ${middle} ${y(to)} ${x2} ${y(to)}`;
}
