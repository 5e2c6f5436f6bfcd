/**
 * A lock file must name every optional dependency of every package in it, those of other platforms too: `npm ci`
 * refuses it otherwise, on every machine. npm itself leaves them out where the lock file was written next to installed
 * packages, or where a registry lacks a platform's package.
 *
 *   node scripts/lint/lock-file.mjs --write      completes the files
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ROOT } from '../lib/repository.mjs';

const PLATFORM =
  /(android|darwin|freebsd|linux|netbsd|openbsd|openharmony|win32)(?:-(arm64|arm|x64|ia32|ppc64|riscv64|s390x|loong64))?/;
/** The product's, and that of the engines that the bench compares with it. */
export const LOCK_FILES = ['package-lock.json', 'bench/peers/package-lock.json'];

/** @typedef {{ optionalDependencies?: Record<string, string>, dev?: boolean }} Entry */

/**
 * @param {string} name
 * @param {string} version
 * @param {boolean | undefined} dev
 */
function entryOf(name, version, dev) {
  const [, os, cpu] = PLATFORM.exec(name) ?? [];
  return {
    version,
    ...(cpu && { cpu: [cpu] }),
    ...(dev && { dev }),
    ...(os === 'linux' && { libc: [name.includes('musl') ? 'musl' : 'glibc'] }),
    optional: true,
    ...(os && { os: [os] }),
  };
}

/**
 * The entries that lack, by path.
 *
 * @param {Record<string, Entry>} packages
 */
export function missingEntries(packages) {
  /** @type {Record<string, ReturnType<typeof entryOf>>} */
  const missing = {};
  const names = new Set(
    Object.keys(packages).map((path) => path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length)),
  );
  for (const { optionalDependencies = {}, dev } of Object.values(packages)) {
    for (const [name, version] of Object.entries(optionalDependencies)) {
      if (!names.has(name)) missing[`node_modules/${name}`] = entryOf(name, version.replace(/^[~^]/, ''), dev);
    }
  }
  return missing;
}

/** @param {string} path */
export const readLock = (path) => JSON.parse(readFileSync(join(ROOT, path), 'utf8'));

if (process.argv[1] === fileURLToPath(import.meta.url) && process.argv.includes('--write')) {
  for (const path of LOCK_FILES) {
    const lock = readLock(path);
    const { '': top, ...packages } = { ...lock.packages, ...missingEntries(lock.packages) };
    const sorted = Object.fromEntries(Object.entries(packages).sort(([a], [b]) => (a < b ? -1 : 1)));
    writeFileSync(join(ROOT, path), `${JSON.stringify({ ...lock, packages: { '': top, ...sorted } }, undefined, 2)}\n`);
  }
}
