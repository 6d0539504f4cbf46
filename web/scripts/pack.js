// SPDX-License-Identifier: Apache-2.0
// Makes dist/ of what Vite has built: every file compressed, and the digest of the sources it was made from.
import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';

const web = dirname(dirname(fileURLToPath(import.meta.url)));
const built = process.env.PAWL_WEB_OUT ?? join(web, 'build');
const dist = process.env.PAWL_WEB_DIST ?? join(web, 'dist');

function filesBelow(place) {
  return readdirSync(place)
    .sort()
    .map((name) => join(place, name))
    .flatMap((path) => (statSync(path).isDirectory() ? filesBelow(path) : [path]));
}

// tests/web/bundle.py computes the same, without Node.
function digestOfSources() {
  const digest = createHash('sha256');
  const top = ['index.html', 'package-lock.json', 'package.json', 'tsconfig.json', 'vite.config.ts'];
  const below = ['public', 'src'].flatMap((name) => filesBelow(join(web, name)).map((path) => relative(web, path)));
  for (const name of [...top, ...below].sort()) {
    digest.update(`${name}\0`);
    digest.update(readFileSync(join(web, name)));
    digest.update('\0');
  }
  return digest.digest('hex');
}

// What the bundle contains of others, under their licences.
const notices = ['preact', '@dagrejs/dagre', '@dagrejs/graphlib', 'uplot'].map(
  (name) => `${name}\n\n${readFileSync(join(web, 'node_modules', name, 'LICENSE'), 'utf8').trim()}\n`,
);
writeFileSync(join(built, 'licenses.txt'), notices.join('\n----\n\n'));

rmSync(dist, { recursive: true, force: true });
let total = 0;
for (const path of filesBelow(built)) {
  const packed = gzipSync(readFileSync(path), { level: 9 });
  const target = join(dist, `${relative(built, path)}.gz`);
  mkdirSync(dirname(target), { recursive: true });
  writeFileSync(target, packed);
  total += packed.length;
}
writeFileSync(join(dist, 'sources.sha256'), `${digestOfSources()}\n`);
console.log(`${dist}: ${(total / 1024).toFixed(1)} KiB compressed`);
