import { faultOfJson, formatJson, textOf } from '../api/json.ts';

/** A payload as it was sent, laid out; or any other text as it is. */
export function JsonView({ label, value }: { label: string; value: unknown }) {
  const text = typeof value === 'string' ? value : textOf(value);
  return (
    <pre class="user" aria-label={label} tabIndex={0}>
      {faultOfJson(text) === null ? formatJson(text) : text}
    </pre>
  );
}
