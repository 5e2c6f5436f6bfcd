/**
 * Checks that src/grpc/generated is what proto/ gave, by digests of both, which scripts/generate.mjs leaves in
 * proto/generated.json.
 */
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { ROOT } from '../lib/repository.mjs';

export const GENERATED = 'src/grpc/generated';
export const DIGESTS = 'proto/generated.json';
/** The compiler and its plugin. The plugin's version is that of the runtime, @bufbuild/protobuf. */
export const GENERATORS = ['@bufbuild/buf@1.75.0', '@bufbuild/protoc-gen-es@2.17.0'];

/** @param {string} path */
const read = (path) => JSON.parse(readFileSync(join(ROOT, path), 'utf8'));

/**
 * Digest of the names and contents of all files below `folder` that end so.
 *
 * @param {string} folder
 */
export function digestOf(folder, ending = '') {
  const hash = createHash('sha256');
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter(
    (entry) => entry.isFile() && entry.name.endsWith(ending),
  );
  for (const path of files.map(({ parentPath, path: before, name }) => join(parentPath ?? before, name)).sort()) {
    hash
      .update(`${relative(folder, path).replaceAll('\\', '/')}\0`)
      .update(readFileSync(path))
      .update('\0');
  }
  return hash.digest('hex');
}

export function digests() {
  return {
    generators: GENERATORS,
    proto: digestOf(join(ROOT, 'proto'), '.proto'),
    generated: digestOf(join(ROOT, GENERATED)),
  };
}

/** A line for each thing that is not as it was when the code was generated. */
export function outdated() {
  const found = [];
  const before = read(DIGESTS);
  const now = digests();
  if (now.proto !== before.proto) found.push('proto/ has changed: node scripts/generate.mjs');
  if (now.generated !== before.generated) found.push(`${GENERATED} was changed by hand: node scripts/generate.mjs`);
  if (`${now.generators}` !== `${before.generators}`)
    found.push('the generators have changed: node scripts/generate.mjs');
  const runtime = read('scripts/bundle/package.json').dependencies['@bufbuild/protobuf'];
  const plugin = GENERATORS.at(-1)?.split('@').at(-1);
  if (runtime.replace('^', '') !== plugin) found.push(`@bufbuild/protobuf is ${runtime}, its plugin ${plugin}`);
  return found;
}
