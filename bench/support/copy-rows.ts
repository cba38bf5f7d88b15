type Query = (statement: string) => Promise<Record<string, unknown>[]>;

/**
 * A statement that copies a row `t` of a table once for each row of `new`: all columns as they are, but for these. The caller adds `WHERE`.
 */
export async function copyStatement(query: Query, table: string, others: Record<string, string>): Promise<string> {
  const columns = (
    await query(`SELECT quote_ident(attname) AS name FROM pg_attribute
      WHERE attrelid = '${table}'::regclass AND attnum > 0 AND NOT attisdropped AND attgenerated = ''`)
  ).map(({ name }) => String(name));
  const values = columns.map((name) => others[name] ?? `t.${name}`);
  return `INSERT INTO ${table} (${columns.join(', ')}) SELECT ${values.join(', ')} FROM new, ${table} t`;
}
