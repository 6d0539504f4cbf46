// SPDX-License-Identifier: Apache-2.0
import { defineConfig } from 'vite';

// `npm run dev` shows the sources as they are edited, on the data of a server that runs already.
const server = process.env.PAWL_URL ?? 'http://127.0.0.1:7420';

export default defineConfig({
  esbuild: { jsx: 'automatic', jsxImportSource: 'preact', legalComments: 'none' },
  build: {
    target: 'es2022',
    cssTarget: 'chrome123',
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
    reportCompressedSize: false,
    outDir: process.env.PAWL_WEB_OUT ?? 'build',
    emptyOutDir: true,
  },
  server: {
    proxy: {
      '/v1': server,
      '^/systems/[^/]+/page.js$': server,
      '^/(metrics|healthz|readyz)$': server,
    },
  },
});
