/**
 * Watches the lock service for an owner that must miss no change: begins when the watch is established, so that a list
 * read afterwards and the events together are complete, and has the owner read again after a gap. Where a watch has
 * ended, and its owner goes on, another one is begun: it has a gap before it.
 */
import { unavailable } from '../../base/index.ts';
import type { Clock } from '../seams/clock.ts';
import type { LockChange, LockEvent, LockService } from '../seams/lock-service.ts';

/** The delay before the owner reads again after it failed to. */
const READ_AGAIN_MS = 1000;
/** The delay before a watch is begun in place of one that has ended. */
const WATCH_AGAIN_MS = 1000;

export interface Follower {
  /** `missed`: to be called if what the change is about could not be read. */
  onChange(change: LockChange, missed: () => void): void;
  /** Changes may have been missed. Called again if it fails. */
  readAgain(): Promise<void>;
  /** No change will be reported any more. Left out: another watch is begun. */
  readonly onEnd?: () => void;
}

/** Resolves once every later change is reported; returns the function that stops it. */
export function followChanges(
  { lockService, clock }: { readonly lockService: LockService; readonly clock: Clock },
  prefix: string,
  follower: Follower,
): Promise<() => void> {
  let isEstablished = false;
  let stopped = false;
  let isReading = false;
  let isGap = false;
  const readAgain = async (): Promise<void> => {
    isReading = true;
    while (isGap && !stopped) {
      isGap = false;
      await follower.readAgain().catch(async () => {
        isGap = true;
        await new Promise<void>((resolve) => clock.timer(READ_AGAIN_MS, resolve));
      });
    }
    isReading = false;
  };
  const missed = (): void => {
    isGap = true;
    if (!isReading) void readAgain();
  };
  return new Promise((resolve, reject) => {
    let stopWatching: () => void;
    const watch = (): void => {
      if (!stopped) stopWatching = lockService.watch(prefix, onEvent);
    };
    const onEvent = (event: LockEvent): void => {
      if (stopped) return;
      if (event.kind === 'established') {
        if (isEstablished) return missed();
        isEstablished = true;
        resolve(() => {
          stopped = true;
          stopWatching();
        });
      } else if (event.kind === 'ended') {
        if (!isEstablished) reject(unavailable('the lock service cannot be watched'));
        else if (follower.onEnd === undefined) clock.timer(WATCH_AGAIN_MS, watch);
        else follower.onEnd();
      } else if (event.kind === 'gap') {
        missed();
      } else {
        follower.onChange(event, missed);
      }
    };
    watch();
  });
}
