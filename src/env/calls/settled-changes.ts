/**
 * Guarded changes of the lock service that are sent again until their outcome is known. A change whose answer was lost
 * may also happen late, after a later read: only the answer to a repetition settles it, because a repetition that
 * happens moves the file's version, which refuses the late one. A creation is conditional on the removals in its
 * directory too: otherwise a late one could bring a file back that was removed.
 */
import { type BigtableError, Code, toBigtableError, unavailable } from '../../base/index.ts';
import { type Clock, sleep } from '../seams/clock.ts';
import type { Guard, LockService, SmallFile } from '../seams/lock-service.ts';

/** The delays between the attempts: about three seconds, in which a service replaces its leader. */
const DELAYS_MS = [100, 200, 400, 800, 1600];

/** A change conditional on the file's version. */
type VersionGuard = Guard & { readonly version: number };

/** Other files of the directory may be removed between the question and each attempt. */
const MAX_CREATIONS = 20;

interface Parts {
  readonly lockService: Pick<LockService, 'read' | 'write'>;
  readonly clock: Clock;
}

interface WriteParts {
  readonly lockService: Pick<LockService, 'read' | 'write' | 'lastRemoval'>;
  readonly clock: Clock;
}

/** True when a change that failed with this error may have happened, or may happen yet. */
export function isOutcomeUnknown({ code }: BigtableError): boolean {
  return code === Code.UNAVAILABLE || code === Code.DEADLINE_EXCEEDED;
}

/**
 * Writes the file; returns its version. Another holder of the same guard must not write the same contents. If the error
 * is one of `isOutcomeUnknown`, the file may yet be written while the guard's lock is held.
 */
export function writeSettled(
  parts: WriteParts,
  path: string,
  contents: Uint8Array,
  guard: VersionGuard & { readonly sessionId?: string },
): Promise<number> {
  return guard.version === 0 && guard.sessionId === undefined
    ? createSettled(parts, path, contents, guard)
    : changeSettled(parts, path, contents, guard);
}

async function changeSettled(
  { lockService, clock }: Parts,
  path: string,
  contents: Uint8Array,
  guard: VersionGuard & { readonly sessionId?: string },
): Promise<number> {
  return settled(
    clock,
    () => lockService.write(path, contents, guard),
    async () => {
      const file = await lockService.read(path);
      return file !== undefined && file.version > guard.version && hasContents(file, contents)
        ? file.version
        : undefined;
    },
  );
}

/** Begins anew where only the removal of another file has refused the creation. */
async function createSettled(
  { lockService, clock }: WriteParts,
  path: string,
  contents: Uint8Array,
  guard: VersionGuard,
): Promise<number> {
  const removals = (): Promise<number> =>
    settled(
      clock,
      () => lockService.lastRemoval(path),
      async () => undefined,
    );
  for (let attempt = 1; ; attempt++) {
    const noRemovalAfter = await removals();
    let sent = 0;
    const service = {
      read: (of: string) => lockService.read(of),
      write: (...call: Parameters<LockService['write']>) => {
        sent++;
        return lockService.write(...call);
      },
    };
    try {
      return await changeSettled({ lockService: service, clock }, path, contents, { ...guard, noRemovalAfter });
    } catch (thrown) {
      const error = toBigtableError(thrown);
      if (error.code !== Code.ABORTED || (await removals()) === noRemovalAfter) throw error;
      // it may have been created, and removed again
      if (sent > 1) throw unavailable(error.message, error);
      if (attempt === MAX_CREATIONS) throw error;
    }
  }
}

/** Removes the file of that version. Errors as those of `writeSettled`. */
export async function removeSettled(
  { lockService, clock }: { readonly lockService: Pick<LockService, 'read' | 'remove'>; readonly clock: Clock },
  path: string,
  guard: VersionGuard,
): Promise<void> {
  await settled(
    clock,
    () => lockService.remove(path, guard),
    async () => ((await lockService.read(path)) === undefined ? true : undefined),
  );
}

/**
 * Makes the change until it happens or is refused. `outcome`, called when a repetition is refused: the result of an
 * earlier attempt, if the file shows that it has happened.
 */
async function settled<T>(clock: Clock, change: () => Promise<T>, outcome: () => Promise<T | undefined>): Promise<T> {
  for (let repeats = 0; ; repeats++) {
    try {
      return repeats === 0 ? await change() : await repeated(change, outcome);
    } catch (thrown) {
      const error = toBigtableError(thrown);
      if (error.code === Code.ABORTED || (repeats === 0 && !isOutcomeUnknown(error))) throw error;
      const delayMs = DELAYS_MS[repeats];
      if (delayMs === undefined) throw isOutcomeUnknown(error) ? error : unavailable(error.message, error);
      await sleep(clock, delayMs);
    }
  }
}

async function repeated<T>(change: () => Promise<T>, outcome: () => Promise<T | undefined>): Promise<T> {
  try {
    return await change();
  } catch (thrown) {
    const done = toBigtableError(thrown).code === Code.ABORTED ? await outcome() : undefined;
    if (done === undefined) throw thrown;
    return done;
  }
}

function hasContents(file: SmallFile, contents: Uint8Array): boolean {
  return Buffer.compare(file.contents, contents) === 0;
}
