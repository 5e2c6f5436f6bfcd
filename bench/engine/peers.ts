/**
 * The peers: what a Node user would embed instead. They live in bench/peers, a package of its own that is installed on
 * first use, so that neither the product nor its lock file knows them. Prebuilt binaries come with the packages
 * (scripts stay off); better-sqlite3 has none on the registry and is compiled where a compiler is there. A peer that
 * does not load is left out, with words.
 */
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import type { SystemName } from './job.ts';

// this file runs from dist/bench/engine and from bench/engine
const FOLDER = ['../../../bench/peers', '../peers'].map(
  (path) => new URL(`${path}/package.json`, import.meta.url).pathname,
);
const npm = (folder: string, ...args: string[]): number =>
  spawnSync('npm', [...args, '--no-audit', '--no-fund'], { cwd: folder, stdio: ['ignore', 2, 2] }).status ?? 1;

function packagePath(): string {
  for (const path of FOLDER) {
    try {
      createRequire(path)(path);
      return path;
    } catch {
      // the other place
    }
  }
  throw new Error('bench/peers/package.json is not there');
}

/**
 * The peer's module. Its shape is what the caller says: the packages' own types are not there when the bench is
 * compiled.
 */
export function loadPeer<T>(name: SystemName): T {
  return createRequire(packagePath())(name) as T;
}

/** True when a store of it can be opened, tried in a process of its own: a bad binary may end the process. */
function loads(name: SystemName): boolean {
  const attempt = name === 'better-sqlite3' ? `new (require('${name}'))(':memory:')` : `require('${name}')`;
  return spawnSync(process.execPath, ['-e', attempt], { cwd: join(packagePath(), '..'), stdio: 'ignore' }).status === 0;
}

/** Installs what lacks of the peers and answers those that can be used; says of the others that they are left out. */
export function installPeers(wanted: readonly SystemName[]): readonly SystemName[] {
  const peers = wanted.filter((name) => name !== 'edubba');
  const folder = join(packagePath(), '..');
  if (peers.length > 0 && !existsSync(join(folder, 'node_modules'))) {
    console.error('installing the peers into bench/peers');
    npm(folder, 'ci', '--ignore-scripts');
    if (!loads('better-sqlite3')) npm(folder, 'rebuild', 'better-sqlite3');
  }
  return wanted.filter((name) => {
    if (name === 'edubba' || loads(name)) return true;
    console.error(`${name} is left out: its package does not install or load here`);
    return false;
  });
}
