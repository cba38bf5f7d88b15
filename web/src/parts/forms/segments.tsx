interface Props<T extends string> {
  label: string;
  options: readonly (readonly [value: T, text: string])[];
  value: T;
  onChange: (value: T) => void;
}

/** One of a few, all of them in sight. */
export function Segments<T extends string>({ label, options, value, onChange }: Props<T>) {
  return (
    <div class="segments" role="group" aria-label={label}>
      {options.map(([option, text]) => (
        <button
          key={option}
          type="button"
          aria-pressed={option === value}
          onClick={() => {
            onChange(option);
          }}
        >
          {text}
        </button>
      ))}
    </div>
  );
}
