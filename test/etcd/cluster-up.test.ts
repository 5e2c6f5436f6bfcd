/** `edubba cluster up` as a user starts it, with a real etcd. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { describe, test } from 'node:test';
import { connect, RowMutation } from '../../src/embedded/index.ts';

const PROGRAM = process.env['EDUBBA_ETCD'] ?? '';

/** The command, and what it prints. */
function startUp(folder: string) {
  const args = ['bin/edubba', 'cluster', 'up', '--dir', folder, '--address', '127.0.0.1:0', '--servers', '2'];
  const { EDUBBA_ETCD: _own, ...env } = process.env;
  const child = spawn(process.execPath, [...args, '--etcd', PROGRAM], { stdio: ['ignore', 'pipe', 'inherit'], env });
  const lines: string[] = [];
  const waiting = new Set<() => void>();
  createInterface({ input: child.stdout }).on('line', (line) => {
    lines.push(line);
    for (const look of waiting) look();
  });
  const ended = new Promise<number | null>((resolve) => child.once('exit', resolve));
  const said = (what: RegExp): Promise<string[]> =>
    new Promise((resolve, reject) => {
      const look = (): void => {
        const found = lines.map((line) => what.exec(line)).find((match) => match !== null);
        if (found) resolve(found);
      };
      waiting.add(look);
      look();
      void ended.then(() => reject(new Error(`it has ended: ${lines.join('\n')}`)));
    });
  return { child, said, ended };
}

describe('a cluster for trying out', () => {
  test('serves, survives the death of a server, ends in order, and goes on with its data', async (t) => {
    const folder = await mkdtemp(join(tmpdir(), 'edubba-up-'));
    t.after(() => rm(folder, { recursive: true, maxRetries: 10, retryDelay: 100 }));
    for (const start of ['first', 'second']) {
      const { child, said, ended } = startUp(folder);
      t.after(() => child.kill('SIGKILL'));
      await said(/everything is in/);
      const [, address = ''] = await said(/tabletserver-1: .* on (127\.0\.0\.1:\d+)/);
      const [, other = ''] = await said(/tabletserver-2: process (\d+)/);
      const database = await connect(address);
      if (start === 'first') {
        await database.createTable('t', { families: { f: {} }, splits: ['m'] });
        for (const row of ['a', 'z']) await database.table('t').apply(new RowMutation(row).set('f:q', row));
        process.kill(Number(other), 'SIGKILL');
        await said(/tabletserver-2 has ended \(SIGKILL\) and is started again/);
      }
      for (const row of ['a', 'z']) assert.equal((await database.table('t').get(row))?.name, row);
      await database.close();
      child.kill('SIGTERM');
      assert.equal(await ended, 0);
    }
  });
});
