/** Examples of one operation, each under a name that tells them apart. */
export type Examples = Readonly<Record<string, { summary: string; value: object }>>;
