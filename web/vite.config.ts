import { defineConfig } from 'vite';

/** `npm run build:web` calls this through scripts/build-web.ts, which says where the files go. */
export default defineConfig({
  root: import.meta.dirname,
  // Every address within the files is relative to them, so that they can stand below any base path.
  base: './',
  build: {
    // What has light-dark() and native dialogs; older browsers are not supported.
    target: ['chrome123', 'firefox120', 'safari17.5'],
    // The policy of the pages allows no inline code and no `data:` but small pictures.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    // Many small files weigh more than a few: together, gzip sees what they have in common (an eighth of all). The library
    // of curves alone stays apart, for who looks at none.
    cssCodeSplit: false,
    rolldownOptions: {
      output: {
        codeSplitting: {
          includeDependenciesRecursively: false,
          groups: [
            {
              name: 'pages',
              test: /web\/(src\/(?!parts\/curve-library)|pages\.json)|client\/src|vite\/preload|node_modules\/@?preact/,
            },
          ],
        },
      },
    },
  },
});
