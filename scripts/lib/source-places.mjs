/**
 * Places of compiled files in a text, as those of their sources: by the maps next to them. A process that reads maps by
 * itself (--enable-source-maps) reads that of each module that it loads, a tenth of what starting it costs.
 */
import { existsSync, readFileSync } from 'node:fs';
import { SourceMap } from 'node:module';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ROOT } from './repository.mjs';

const PLACE = /(?:file:\/\/)?(\/[^\s():]*\/dist\/[^\s():]+\.js):(\d+):(\d+)/g;
/**
 * The map of each compiled file that was read; undefined where it has none.
 *
 * @typedef {Map<string, SourceMap | undefined>} Maps
 */

/**
 * @param {string} path
 * @param {Maps} maps
 */
function mapOf(path, maps) {
  if (!maps.has(path)) {
    const file = `${path}.map`;
    maps.set(path, existsSync(file) ? new SourceMap(JSON.parse(readFileSync(file, 'utf8'))) : undefined);
  }
  return maps.get(path);
}

/**
 * The text with the places of sources, relative to the repository.
 *
 * @param {string} text
 */
export function withSourcePlaces(text) {
  /** @type {Maps} */
  const maps = new Map();
  return text.replaceAll(PLACE, (place, path, line, column) => {
    const entry = mapOf(path, maps)?.findEntry(Number(line) - 1, Number(column) - 1);
    if (entry === undefined || !('originalSource' in entry)) return place;
    const { originalSource, originalLine, originalColumn } = entry;
    const source = originalSource.startsWith('file:')
      ? fileURLToPath(originalSource)
      : join(dirname(path), originalSource);
    return `${relative(ROOT, source)}:${originalLine + 1}:${originalColumn + 1}`;
  });
}
