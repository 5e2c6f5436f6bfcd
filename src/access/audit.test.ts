import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { BigtableError, Code } from '../base/index.ts';
import { ByteBudget, type LogFields, ManualClock, requestContext, silentLogger } from '../env/index.ts';
import { Audit } from './audit.ts';
import { denied } from './rights.ts';

const context = requestContext({ budget: new ByteBudget(1000), principal: 'token:a' });

function started() {
  const lines: [string, LogFields | undefined][] = [];
  const note = (message: string, fields?: LogFields): void => void lines.push([message, fields]);
  const clock = new ManualClock();
  return { lines, clock, audit: new Audit({ ...silentLogger, info: note, warn: note }, clock) };
}

describe('the audit log', () => {
  test('has each change with its caller and outcome', async () => {
    const { lines, audit } = started();
    const fields = { principal: 'token:a', call: 'DeleteTable', resource: 't' };
    const attempt = (work: () => Promise<unknown>) => audit.change(context, 'DeleteTable', 't', work).catch(() => {});
    await attempt(async () => {});
    await attempt(async () => {
      throw new BigtableError(Code.NOT_FOUND, 't');
    });
    await attempt(async () => {
      throw denied('token:a', 'bigtable.tables.delete', 't');
    });
    assert.deepEqual(lines, [
      ['audit: a change', fields],
      ['audit: a change failed', { ...fields, error: 'NOT_FOUND' }],
      ['audit: a call was refused', fields],
    ]);
  });

  test('has ten refusals a second, and counts the others', () => {
    const { lines, clock, audit } = started();
    for (let i = 0; i < 25; i++) audit.refusal(context, 'ReadRows', 't');
    assert.equal(lines.length, 10);
    clock.advance(1000);
    audit.refusal(context, 'ReadRows', 't');
    assert.deepEqual(
      lines.slice(10).map(([message, fields]) => [message, fields?.['calls']]),
      [
        ['audit: more calls were refused', 15],
        ['audit: a call was refused', undefined],
      ],
    );
  });
});
