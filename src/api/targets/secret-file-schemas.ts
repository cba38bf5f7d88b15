import { z } from 'zod';

const MAX_FILE_NAME_LENGTH = 255;

export const secretFile = z
  .strictObject({
    file: z
      .string()
      .max(MAX_FILE_NAME_LENGTH)
      .regex(/^[A-Za-z0-9][A-Za-z0-9._-]*(\/[A-Za-z0-9][A-Za-z0-9._-]*)*$/, {
        error:
          'must be a name, or several with slashes between them, each of letters (A-Z, a-z), digits, dots, dashes or ' +
          'underscores, and begin with a letter or digit',
      })
      .meta({ example: 'github-token' }),
  })
  .meta({ id: 'SecretFile', description: 'A file of `FIRELOCK_SECRETS_DIR`, whose content is the value.' });

/** A secret value, or the name of a file that has it. */
export function orFile(text: z.ZodString, description: string) {
  return z
    .union([text, secretFile], {
      error: ({ input }) => (input === undefined ? 'is required' : 'must be a string, or {"file": "NAME"}'),
    })
    .meta({ description });
}
