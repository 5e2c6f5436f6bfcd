/**
 * Listeners to AbortSignals that many waits share. Node warns of a leak where a signal has more than ten listeners, and
 * removes one in time that grows with their number.
 *
 * Invariant: a signal has one listener of ours while something waits with it, and none otherwise.
 */
const listenersOf = new WeakMap<AbortSignal, Set<() => void>>();

function notifyAll(event: Event): void {
  // not currentTarget, which Node 20 empties after the first listener of an event
  const signal = event.target as AbortSignal;
  const listeners = listenersOf.get(signal);
  listenersOf.delete(signal);
  for (const listener of listeners ?? []) listener();
}

/** Calls `listener` once when the signal aborts, if there is one. It has not aborted yet. */
export function onAbort(signal: AbortSignal | undefined, listener: () => void): void {
  if (signal === undefined) return;
  const listeners = listenersOf.get(signal);
  if (listeners !== undefined) {
    listeners.add(listener);
    return;
  }
  listenersOf.set(signal, new Set([listener]));
  signal.addEventListener('abort', notifyAll, { once: true });
}

/** Calls it no more. A listener that is not there is none. */
export function offAbort(signal: AbortSignal | undefined, listener: () => void): void {
  if (signal === undefined) return;
  const listeners = listenersOf.get(signal);
  if (listeners === undefined || !listeners.delete(listener) || listeners.size > 0) return;
  listenersOf.delete(signal);
  signal.removeEventListener('abort', notifyAll);
}
