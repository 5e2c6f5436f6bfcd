import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { test } from 'node:test';
import { offAbort, onAbort } from './abort-listeners.ts';

test('a signal has one listener, however many wait with it, and none after that', () => {
  const abort = new AbortController();
  const { signal } = abort;
  const calls: number[] = [];
  const listeners = Array.from({ length: 20 }, (_, i) => () => void calls.push(i));
  for (const listener of listeners) onAbort(signal, listener);
  assert.equal(getEventListeners(signal, 'abort').length, 1);
  for (const listener of listeners) offAbort(signal, listener);
  assert.equal(getEventListeners(signal, 'abort').length, 0);
  offAbort(signal, listeners[0]!);
  for (const listener of listeners) onAbort(signal, listener);
  offAbort(signal, listeners[3]!);
  abort.abort();
  assert.deepEqual(
    calls,
    listeners.flatMap((_, i) => (i === 3 ? [] : i)),
  );
  assert.equal(getEventListeners(signal, 'abort').length, 0);
});

test('a signal may have listeners of others, before and after', () => {
  const abort = new AbortController();
  const calls: string[] = [];
  abort.signal.addEventListener('abort', () => calls.push('before'));
  onAbort(abort.signal, () => calls.push('ours'));
  abort.signal.addEventListener('abort', () => calls.push('after'));
  abort.abort();
  assert.deepEqual(calls, ['before', 'ours', 'after']);
});

test('a listener may end other waits and its own', () => {
  const abort = new AbortController();
  const calls: string[] = [];
  const second = (): void => void calls.push('second');
  const first = (): void => {
    calls.push('first');
    offAbort(abort.signal, first);
    offAbort(abort.signal, second);
  };
  onAbort(abort.signal, first);
  onAbort(abort.signal, second);
  abort.abort();
  assert.deepEqual(calls, ['first', 'second'], 'all that waited when it aborted are called');
});
