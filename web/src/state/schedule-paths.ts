/** Of a schedule's calls, below `/api/v1`. */
export function callPath(id: string, below = ''): string {
  return `/schedules/${encodeURIComponent(id)}${below}`;
}

/** Of its page. One that is called `new` has its page beside the form for new ones. */
export function pagePath(id: string, below = ''): string {
  return `/schedules/${id === 'new' && below === '' ? '%6Eew' : encodeURIComponent(id)}${below}`;
}
