import { instantOf, localText } from '../../state/local-time.ts';
import type { FieldProps } from './field.tsx';

interface Props {
  field: FieldProps;
  /** ISO 8601; empty: none. */
  value: string;
  zone: string;
  onChange: (value: string) => void;
}

/** A moment, typed as clocks in the zone show it; the zone's name is beside it. */
export function MomentInput({ field, value, zone, onChange }: Props) {
  return (
    <span class="moment">
      <input
        {...field}
        type="datetime-local"
        step={1}
        value={value === '' ? '' : localText(value, zone)}
        onChange={({ currentTarget }) => {
          const at = instantOf(currentTarget.value, zone);
          onChange(at === null ? '' : new Date(at).toISOString());
        }}
      />{' '}
      <span class="quiet">{zone}</span>
    </span>
  );
}
