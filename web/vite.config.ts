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
    // What a page needs beside its own file is loaded by then; and styles are one file.
    modulePreload: false,
    reportCompressedSize: false,
    // One file: many small ones weigh more, since gzip sees less of what they have in common.
    cssCodeSplit: false,
  },
});
