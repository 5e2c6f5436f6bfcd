/** What a test file has opened: closed at its end, also where a test has failed and left it open. */
import { after } from 'node:test';

interface Closable {
  close(): unknown;
}

const opened = new Set<Closable>();

export function closedAtEnd<T extends Closable>(one: T): T {
  opened.add(one);
  return one;
}

after(async () => {
  for (const one of opened) await one.close();
});
