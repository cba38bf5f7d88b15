/** Of an option that may be given several times: its values, in order. */
export function collect(value: string, before: readonly string[] = []): string[] {
  return [...before, value];
}
