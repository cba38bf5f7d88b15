const HEAD = `# Configuration

For operators. Every setting is an environment variable. firelock reads them once, at its start; it names every wrong one
and does not start. \`npm start\` also reads a file \`.env\`. \`npm run reference\` writes this page from
[.env.example](../../.env.example).

| variable | default | what it is |
| --- | --- | --- |`;

/** A table of what `.env.example` says: a comment line and, under it, the variable with its default. */
export function configurationReference(example: string): string {
  const rows = [...example.matchAll(/^\n# (.*)\n# ([A-Z_]+)=(.*)$/gm)].map(
    ([, comment = '', name = '', value = '']) => {
      const standard = name.endsWith('DATABASE_URL') || value === '' ? '' : `\`${value}\``;
      return `| \`${name}\` | ${standard} | ${comment.replaceAll('|', '\\|')} |`;
    },
  );
  return [HEAD, ...rows, ''].join('\n');
}
