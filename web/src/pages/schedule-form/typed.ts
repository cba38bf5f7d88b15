/** What is no number goes as it is, so that the daemon says so. */
export function numberOf(text: string): number | string | undefined {
  if (text.trim() === '') return undefined;
  return Number.isFinite(Number(text)) ? Number(text) : text;
}
