/** The origin of a URL that may contain templates, which are allowed in path and query only. Null: it is no URL. */
export function originOf(url: string): string | null {
  return URL.parse(url)?.origin ?? null;
}
