import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { BigtableError, Code, CorruptionError } from '../base/index.ts';
import { LoadFailures } from './load-failures.ts';
import { silentLogger } from '../env/index.ts';

function fixture(): { failures: LoadFailures; logged: string[] } {
  const logged: string[] = [];
  const note = (level: string) => (message: string) => void logged.push(`${level}: ${message}`);
  return {
    logged,
    failures: new LoadFailures({ ...silentLogger, info: note('info'), warn: note('warn'), error: note('error') }),
  };
}

const damage = new CorruptionError('sstables/a', 5, 'bad');
const [a, b] = [
  { key: 'a', epoch: 1 },
  { key: 'b', epoch: 1 },
];

describe('failures of loading', () => {
  test('are logged once, again when the error changes, and when they end', () => {
    const { failures, logged } = fixture();
    for (let i = 0; i < 10; i++) {
      failures.failed(a, damage);
      failures.failed(b, damage);
    }
    assert.equal(logged.length, 2);
    failures.failed(a, new CorruptionError('sstables/b', 6, 'worse'));
    assert.equal(logged.length, 3);
    failures.loaded(a);
    failures.loaded(a);
    assert.equal(logged.length, 4);
    assert.match(logged[3] as string, /info: .*is served now/);
    failures.failed(a, damage);
    assert.equal(logged.length, 5);
  });

  test('are dropped for tablets that are gone', () => {
    const { failures, logged } = fixture();
    failures.failed(a, damage);
    failures.gone(a.key);
    failures.loaded(a);
    assert.equal(logged.length, 1, 'it is another tablet by now');
  });

  test('that are races of tablets on their way are not errors', () => {
    const { failures, logged } = fixture();
    failures.failed(a, new BigtableError(Code.FAILED_PRECONDITION, 'released'));
    assert.match(logged[0] as string, /^info/);
  });
});
