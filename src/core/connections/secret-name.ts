/** Why this cannot be the name of a secret file, or null. A slash leads into a folder of FIRELOCK_SECRETS_DIR. */
export function secretNameFault(name: string): string | null {
  if (name.length > MOST_CHARACTERS) return `is longer than ${MOST_CHARACTERS} characters`;
  const parts = name.split('/');
  if (parts.some((part) => part === '.' || part === '..')) return 'contains . or .. as a part';
  return parts.every((part) => PART.test(part))
    ? null
    : 'is not made of A-Z, a-z, 0-9, ., _, - and single slashes';
}

const MOST_CHARACTERS = 255;
const PART = /^[A-Za-z0-9._-]+$/;
