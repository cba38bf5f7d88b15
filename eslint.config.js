import js from '@eslint/js';
import tseslint from 'typescript-eslint';

const SYNTAX = [
  {
    selector: 'ExportDefaultDeclaration',
    message: 'Export by name: a thing has one name everywhere.',
  },
  { selector: 'TSEnumDeclaration', message: 'Use a union of string literals.' },
];

const CLOCK = 'Time comes from runtime/clock.ts.';

/** The house rules that a tool can hold; .oxlintrc.json has those that need types, CONTRIBUTING.md the ones that no tool can hold. */
export default tseslint.config(
  {
    ignores: [
      'dist/',
      'release/',
      'drizzle/',
      'openapi/',
      'node_modules/',
      '.firelock/',
      'clients/typescript/dist/',
      'clients/typescript/src/generated/',
    ],
  },
  js.configs.recommended,
  ...tseslint.configs.strict,
  ...tseslint.configs.stylistic,
  {
    rules: {
      // A name beside a rest operator leaves that field out.
      '@typescript-eslint/no-unused-vars': ['error', { ignoreRestSiblings: true }],
      '@typescript-eslint/consistent-type-definitions': ['error', 'interface'],
      '@typescript-eslint/no-non-null-assertion': 'error',
      'no-console': 'error',
      eqeqeq: 'error',
      'max-depth': ['error', 3],
      'no-restricted-syntax': ['error', ...SYNTAX],
    },
  },
  {
    // What is longer has a reason beside it: one statement, one table of fields, a closure of short functions.
    files: ['src/**', 'web/src/**', 'clients/typescript/src/**'],
    rules: {
      'max-lines': ['error', 250],
      'max-lines-per-function': ['error', 40],
      'max-len': [
        'error',
        {
          code: 120,
          comments: 140,
          ignoreStrings: true,
          ignoreTemplateLiterals: true,
          ignoreRegExpLiterals: true,
          ignoreUrls: true,
        },
      ],
    },
  },
  {
    files: ['src/**'],
    ignores: ['src/runtime/clock.ts'],
    rules: {
      'no-restricted-syntax': [
        'error',
        ...SYNTAX,
        { selector: 'NewExpression[callee.name="Date"][arguments.length=0]', message: CLOCK },
      ],
      'no-restricted-properties': [
        'error',
        { object: 'Date', property: 'now', message: CLOCK },
        { object: 'performance', property: 'now', message: CLOCK },
      ],
    },
  },
  {
    // Markup is tall.
    files: ['web/src/**/*.tsx'],
    rules: { 'max-lines-per-function': ['error', 70] },
  },
  {
    files: ['test/**', 'bench/**', 'scripts/**', '*.config.{ts,js}', 'web/*.config.ts'],
    rules: { 'no-console': 'off', 'no-restricted-syntax': 'off' },
  },
  { files: ['**/*.cjs'], languageOptions: { globals: { module: 'writable' } } },
  {
    // Programs to copy, in plain JavaScript for Node 20.
    files: ['examples/**'],
    rules: { 'no-console': 'off' },
    languageOptions: {
      globals: Object.fromEntries(
        'AbortController AbortSignal URL clearInterval clearTimeout console fetch process setInterval setTimeout'
          .split(' ')
          .map((name) => [name, 'readonly']),
      ),
    },
  },
);
