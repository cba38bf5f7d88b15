/** An address as it is written to: its domain in ASCII. Null: it is none, or one that not every mail server takes. */
export function mailAddress(text: string): string | null {
  const at = text.lastIndexOf('@');
  const [local, domain] = [text.slice(0, at), mailDomain(text.slice(at + 1))];
  return at < 1 || domain === null || !LOCAL.test(local) ? null : `${local}@${domain}`;
}

/** RFC 5321 without quotes: visible ASCII but what has a meaning in a header. */
const LOCAL = /^[!#$%&'*+\-./0-9=?A-Z^_`a-z{|}~]{1,64}$/;
const LABELS = /^(?=.{1,253}$)(?:[a-z\d](?:[a-z\d-]{0,61}[a-z\d])?\.)*[a-z\d](?:[a-z\d-]{0,61}[a-z\d])?$/;

function mailDomain(text: string): string | null {
  // IDNA leaves out what nobody sees: that name would look like another one.
  if (/[\p{White_Space}\p{C}]|[:/?#%@[\]\\]/u.test(text)) return null;
  const ascii = URL.parse(`http://${text}/`)?.hostname ?? '';
  return LABELS.test(ascii) && !/^[\d.]+$/.test(ascii) ? ascii : null;
}

/** Domains to which mail may go; `.example.com` stands for all below one. */
export function parseMailDomains(
  text: string,
): [domains: string[], faults: { entry: string; message: string }[]] {
  const entries = text.split(',').map((entry) => entry.trim());
  const read = entries.map((entry) => {
    const below = entry.startsWith('.') ? '.' : '';
    const domain = mailDomain(entry.slice(below.length));
    return domain === null ? null : below + domain;
  });
  const faults = entries.flatMap((entry, index) =>
    read[index] === null ? [{ entry, message: 'is no domain such as example.com or .example.com' }] : [],
  );
  return [read.filter((domain) => domain !== null), faults];
}

/** `domains`: none stand for all. */
export function mayMailTo(domains: readonly string[], address: string): boolean {
  const domain = address.slice(address.lastIndexOf('@') + 1).toLowerCase();
  const fits = (one: string) => (one.startsWith('.') ? domain.endsWith(one) : domain === one);
  return domains.length === 0 || domains.some(fits);
}
