interface Props {
  labels: Record<string, string>;
  /** Absent: they cannot be chosen. */
  onChoose?: (label: string) => void;
}

/** As `key:value`. */
export function Labels({ labels, onChoose }: Props) {
  return (
    <>
      {Object.entries(labels).map(([key, value]) => {
        const text = `${key}:${value}`;
        if (!onChoose)
          return (
            <span key={text} class="label user">
              {text}
            </span>
          );
        return (
          <button
            key={text}
            type="button"
            class="label user"
            title={`Only those with ${text}`}
            onClick={() => {
              onChoose(text);
            }}
          >
            {text}
          </button>
        );
      })}
    </>
  );
}
