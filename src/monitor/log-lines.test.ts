import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { logLine } from './log-lines.ts';

/** 2026-01-02T03:04:05.678Z */
const TIME = Date.UTC(2026, 0, 2, 3, 4, 5, 678) * 1000;

test('text: time, level, message, fields; only values that need it are quoted', () => {
  assert.equal(
    logLine('text', 'warn', TIME, 'the disk is slow', { ms: 12.5, path: 'logs/a-1', why: 'it is old', is: true }),
    '2026-01-02T03:04:05.678Z warn the disk is slow ms=12.5 path=logs/a-1 why="it is old" is=true\n',
  );
  assert.equal(
    logLine('text', 'access', TIME, 'call', { code: 'OK' }),
    '2026-01-02T03:04:05.678Z access call code=OK\n',
  );
});

test('text: a stack follows its line, indented', () => {
  assert.equal(
    logLine('text', 'error', TIME, 'failed', { stack: 'Error: x\n    at a (b:1)', count: 1 }),
    '2026-01-02T03:04:05.678Z error failed count=1\n    Error: x\n    at a (b:1)\n',
  );
});

test('JSON: one object a line; a field cannot replace one of the line’s own', () => {
  assert.deepEqual(JSON.parse(logLine('json', 'info', TIME, 'm', { level: 'error', time: 'never', n: 1 })), {
    time: '2026-01-02T03:04:05.678Z',
    level: 'info',
    message: 'm',
    level_: 'error',
    time_: 'never',
    n: 1,
  });
  assert.deepEqual(JSON.parse(logLine('json', 'access', TIME, 'call', {})), {
    time: '2026-01-02T03:04:05.678Z',
    level: 'info',
    message: 'call',
    log: 'access',
  });
});

const NASTY = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.constantFrom(
    'a\nb',
    '\r\n2026 error it burns',
    '\u001b[2J',
    '\u2028',
    '\u202egnp',
    '\ud800',
    '\u0085',
    'x"y',
    '\u009b31m',
  ),
);

test('with any value a line stays one line without characters that steer a terminal, and JSON is read back', () => {
  fc.assert(
    fc.property(NASTY, NASTY, (message, value) => {
      for (const format of ['text', 'json'] as const) {
        const line = logLine(format, 'warn', TIME, message, { value });
        assert.match(line, /^[^\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]*\n$/u);
        if (format === 'json') assert.deepEqual([JSON.parse(line).message, JSON.parse(line).value], [message, value]);
      }
    }),
  );
});

test('long values are cut', () => {
  for (const format of ['text', 'json'] as const)
    assert.ok(logLine(format, 'warn', TIME, 'm'.repeat(5000), { value: 'v'.repeat(1_000_000) }).length < 2200);
});
