/** Of a URL that may hold templates: these stand in path and query only. Null: it is none. */
export function originOf(url: string): string | null {
  return URL.parse(url)?.origin ?? null;
}
