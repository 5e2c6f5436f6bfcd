/**
 * Completions as the shells themselves make them: each script is read by its shell, which is asked what it would offer.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { edubbaScript } from './edubba-script.ts';
import { edubba, output } from './run.ts';
import { userEnvironment } from './user-environment.ts';

interface Asked {
  readonly script: string;
  /** Directory that holds `edubba`, and the database `data`. */
  readonly home: string;
  /** As it is typed, up to the cursor. */
  readonly line: string;
}

function run(shell: string, words: readonly string[], home: string): string {
  const { status, stdout, stderr } = spawnSync(shell, words, {
    encoding: 'utf8',
    cwd: home,
    env: {
      ...userEnvironment(),
      PATH: `${home}:${process.env['PATH']}`,
      HOME: home,
      XDG_CONFIG_HOME: home,
      XDG_DATA_HOME: home,
    },
  });
  assert.equal(status, 0, stderr);
  assert.equal(stderr, '', stderr);
  return stdout;
}

/** The words that each shell offers, one a line, some with a tab and a description. */
const SHELLS: Readonly<Record<string, (asked: Asked) => string>> = {
  // bash breaks words at = and : as well; the script must not depend on how
  bash: ({ script, home, line }) => {
    const words = line.split(/(?<=[=:])|(?=[=:])|\s+/).filter((word) => word !== '');
    if (/\s$/.test(line)) words.push('');
    const quoted = words.map((word) => `'${word}'`).join(' ');
    const ask = `source "$1"; COMP_LINE="$2"; COMP_POINT=\${#COMP_LINE}; COMP_WORDS=(${quoted}); COMP_CWORD=$((\${#COMP_WORDS[@]} - 1)); _edubba; printf '%s\\n' "\${COMPREPLY[@]}"`;
    return run('bash', ['--norc', '-c', ask, 'bash', script, line], home);
  },
  // outside its line editor zsh cannot complete: what would go to the editor is printed
  zsh: ({ script, home, line }) => {
    const ask = `
      offer() { for one in "$@"; do [[ $one == "$words[CURRENT]"* ]] && print -r -- "$one"; done; true }
      compadd() { while [[ $1 != -- ]]; do shift; done; shift; offer "$@" }
      _describe() { local one; for one in "\${(@P)2}"; do offer "\${one%%:*}"; done }
      _files() { [[ $1 == -/ ]] && offer *(N/) || offer *(N) }
      source "$1"; words=(\${(z)2}); [[ $2 == *' ' ]] && words+=(''); CURRENT=$#words; _edubba`;
    return run('zsh', ['-f', '-c', ask, 'zsh', script, line], home);
  },
  fish: ({ script, home, line }) =>
    run('fish', ['--no-config', '-c', `source "$argv[1]"; complete -C "$argv[2]"`, script, line], home),
};

for (const [shell, offers] of Object.entries(SHELLS)) {
  const isThere = spawnSync(shell, ['--version']).status === 0;
  describe(`completions of ${shell}`, { skip: isThere ? false : `there is no ${shell} here` }, () => {
    let home: string;
    let script: string;
    before(async () => {
      home = await mkdtemp(join(tmpdir(), 'edubba-completion-'));
      const command = [
        process.execPath,
        ...process.execArgv.filter((word) => !word.startsWith('--test')),
        edubbaScript(),
      ];
      writeFileSync(
        join(home, 'edubba'),
        `#!/bin/sh\ncd '${process.cwd()}' && exec ${command.map((word) => `'${word}'`).join(' ')} "$@"\n`,
      );
      chmodSync(join(home, 'edubba'), 0o755);
      mkdirSync(join(home, 'folder'));
      script = join(home, `script.${shell}`);
      writeFileSync(script, await output(['completion', shell]));
      for (const table of ['web', 'metrics'])
        await output(['--dir', join(home, 'data'), 'createtable', table, 'families=f:never']);
    });
    after(() => rm(home, { recursive: true, force: true }));

    const wordsFor = (line: string): string[] =>
      offers({ script, home, line })
        .split('\n')
        .map((one) => one.split('\t')[0] as string)
        .filter((word) => word !== '')
        .sort();

    test('commands, of edubba and of its commands', () => {
      assert.deepEqual(wordsFor('edubba dele'), [
        'deleteallrows',
        'deleteappprofile',
        'deletebackup',
        'deletecluster',
        'deletecolumn',
        'deleteexportedbackup',
        'deletefamily',
        'deleteinstance',
        'deleterow',
        'deletetable',
      ]);
      const all = wordsFor('edubba ');
      for (const command of ['serve', 'ls', 'inspect', 'version', 'completion', 'help'])
        assert.ok(all.includes(command), all.join(' '));
      assert.deepEqual(wordsFor('edubba inspect '), ['check', 'help', 'log', 'metadata', 'repair', 'sstable']);
      assert.deepEqual(wordsFor('edubba --json token '), ['add', 'help', 'list', 'remove']);
      assert.deepEqual(wordsFor('edubba completion '), ['bash', 'fish', 'zsh']);
      assert.ok(wordsFor('edubba help inc').includes('increment'));
    });

    test('every command that help shows is offered', async () => {
      const shown = [...(await output(['--help'])).matchAll(/^ {2}([a-z]+) {2,}\S/gm)].map(
        ([, name]) => name as string,
      );
      assert.deepEqual(wordsFor('edubba '), [...new Set(shown)].sort());
    });

    test('options of the command and of all commands, and their values', () => {
      const options = wordsFor('edubba inspect check --');
      for (const option of ['--verbose', '--dir', '--json', '--help'])
        assert.ok(options.includes(option), options.join(' '));
      assert.ok(!options.includes('--entries'));
      assert.deepEqual(wordsFor('edubba --tls-c'), ['--tls-ca', '--tls-cert']);
      assert.deepEqual(wordsFor('edubba serve --limits '), ['cloud', 'default']);
      assert.deepEqual(
        wordsFor('edubba --dir fold').map((word) => word.replace(/\/$/, '')),
        ['folder'],
      );
      assert.ok(wordsFor('edubba token list scr').includes(`script.${shell}`));
      assert.deepEqual(wordsFor('edubba --project '), []);
    });

    test('names of arguments', () => {
      assert.deepEqual(wordsFor('edubba read t pre'), ['prefix=']);
      assert.deepEqual(wordsFor('edubba read t prefix=a c'), ['cells-per-column=', 'columns=', 'count=']);
      assert.deepEqual(wordsFor('edubba lookup t row keys'), ['keys-only=']);
      assert.deepEqual(wordsFor('edubba set t row '), []);
      assert.deepEqual(wordsFor('edubba createappprofile i p text route'), ['route-any', 'route-to=']);
      assert.deepEqual(wordsFor('edubba updatecluster c '), ['num-nodes=']);
      assert.deepEqual(wordsFor('edubba deleteappprofile i p '), ['force']);
    });

    test('tables, of the directory that the line names', () => {
      const directory = join(home, 'data');
      assert.deepEqual(wordsFor(`edubba --dir ${directory} read `), ['metrics', 'web']);
      assert.deepEqual(wordsFor(`edubba read --dir ${directory} w`), ['web']);
      assert.deepEqual(wordsFor(`edubba --json --instance local --dir ${directory} ls m`), ['metrics']);
      // where nothing says where tables are, nothing is offered, and nothing is printed either
      assert.deepEqual(wordsFor('edubba read '), []);
    });
  });
}

test('a shell that is not known is refused', async () => {
  const { status, out, err } = await edubba(['completion', 'tcsh']);
  assert.deepEqual([status, out], [2, '']);
  assert.match(err, /Allowed choices are bash, zsh, fish/);
});
