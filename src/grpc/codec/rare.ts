/**
 * When the generated codec is loaded. Requests and answers that are sent most are read and written by hand, and need nothing of it; building the
 * descriptors that it works by takes longer than opening a small database. So it is loaded when somebody first needs it, once.
 *
 * Requests are read synchronously. One that turns out to need the generated codec before it is there is read again from its beginning, when it is.
 */
import { lazily } from './lazily.ts';
import type { RareMessages } from './rare-messages.ts';

let rare: RareMessages | undefined;

const NOT_LOADED = new Error('the generated codec is not loaded: its caller is not within withRareMessages');

/** To be called within `withRareMessages` alone. */
export function rareMessages(): RareMessages {
  if (rare === undefined) throw NOT_LOADED;
  return rare;
}

/** For those who can wait. */
export const loadRareMessages = lazily(async () => (rare = (await import('./rare-messages.ts')).RARE_MESSAGES));

/** Answers what `read` does, which changes nothing that lasts: it may be called twice. */
export function withRareMessages<T>(read: () => T | Promise<T>): T | Promise<T> {
  if (rare !== undefined) return read();
  const again = (thrown: unknown): Promise<T> => {
    if (thrown !== NOT_LOADED) throw thrown;
    return loadRareMessages().then(read);
  };
  try {
    const answer = read();
    return answer instanceof Promise ? answer.catch(again) : answer;
  } catch (thrown) {
    return again(thrown);
  }
}
