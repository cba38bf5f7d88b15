/** The pattern for ILIKE that finds a text anywhere, with nothing in it that stands for anything else. */
export function containing(text: string): string {
  return `%${text.replaceAll(/[\\%_]/g, '\\$&')}%`;
}
