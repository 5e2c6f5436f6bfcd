/** The files of deploy/, and what they are held against: the command's own help, and systemd. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { output } from '../cli/run.ts';
import { type Image, parseDockerfile } from './dockerfile.ts';

export const ROOT = fileURLToPath(
  new URL(import.meta.url.includes('/dist/test/') ? '../../../' : '../../', import.meta.url),
);

/** The text of a file of the repository. */
export const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8');

/** What deploy/Dockerfile makes. */
export function theImage(): Image {
  return parseDockerfile(read('deploy/Dockerfile')).at(-1)?.image ?? assert.fail('no stage');
}

/** Every option among `words` stands in the help of the command, or in that of all commands. */
export async function assertKnown(words: readonly string[]): Promise<void> {
  const command = words.find((word) => !word.startsWith('-')) ?? assert.fail('no command');
  const help = `${await output([command, '--help'])}${await output(['--help'])}`;
  for (const word of words.filter((each) => each.startsWith('--'))) {
    const [option] = word.split('=');
    assert.match(help, new RegExp(`^ +${option} `, 'm'), `${option} is no option of ${command}`);
  }
}

/** The sections of a unit of systemd, each key with its values. */
export function parseUnit(text: string): Map<string, string[]> {
  const found = new Map<string, string[]>();
  for (const line of text.split('\n')) {
    const [, key, value] = /^(\w+)=(.*)$/.exec(line) ?? [];
    if (key !== undefined) found.set(key, [...(found.get(key) ?? []), value as string]);
    else assert.match(line, /^(#.*|\[\w+\]|)$/, 'a line that is neither a comment, a section nor a setting');
  }
  return found;
}

/** What systemd says of a unit. */
export function analyze(args: readonly string[]): { readonly status: number | null; readonly said: string } {
  const { status, stdout, stderr } = spawnSync('systemd-analyze', ['--no-pager', ...args], { encoding: 'utf8' });
  return { status, said: `${stdout}${stderr}` };
}

const version = Number(/systemd (\d+)/.exec(analyze(['--version']).said)?.[1] ?? 0);

/** Why `analyze` cannot be used, or false. */
export const noSystemd = version >= 250 ? false : 'systemd-analyze 250 or newer is not here';
