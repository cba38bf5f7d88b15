import type { ComponentChildren } from 'preact';

/** Numbers, each with what it counts. */
export function Figures({ figures }: { figures: readonly (readonly [name: string, value: ComponentChildren])[] }) {
  return (
    <dl class="figures">
      {figures.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}
