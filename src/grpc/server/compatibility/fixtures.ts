/**
 * Goes through every call, feature and limit on any server of the API, and says in a line each how that does. A server
 * whose process ends in a call is opened anew, and the earlier calls are made again. Used by the tests of Edubba and by
 * scripts/compatibility.mjs, which records Google's emulator.
 */
import { type Memory, nameOf, outcomeOf, type Outcome, type Step, STEPS, takeStep } from '../every-call/fixtures.ts';
import {
  limitOf,
  makeTable,
  negativeTimestampsOf,
  PROBES,
  SIZE_PROBES,
  type Subject,
} from '../every-feature/fixtures.ts';
import type { ApiClient } from '../fixtures.ts';

export interface Opened {
  readonly api: ApiClient;
  close(): Promise<void>;
}

/** A line of the record: "SECTION NAME: WORD". */
export interface Line extends Outcome {
  readonly line: string;
}

/** Edubba's reads see no cell that a rule drops. */
const isExact = async (): Promise<boolean> => false;
/** The word for a call during which the server's process ended. */
const ENDED = 'the process ends';

const lineOf = (what: string, { word, detail }: Outcome): Line => ({ line: `${what}: ${word}`, word, detail });
const isEnd = ({ word }: Outcome): boolean => word === 'UNAVAILABLE';

export async function probeCalls(open: () => Promise<Opened>): Promise<Line[]> {
  let server = await open();
  let memory: Memory = { consistencyToken: '' };
  const lines: Line[] = [];
  const answered: Step[] = [];
  for (const step of STEPS) {
    let outcome = await takeStep(step, server.api, memory);
    if (isEnd(outcome)) {
      outcome = { ...outcome, word: ENDED };
      await server.close();
      server = await open();
      memory = { consistencyToken: '' };
      for (const earlier of answered) await takeStep(earlier, server.api, memory);
    } else if (/^(works|wrong)$/.test(outcome.word)) answered.push(step);
    lines.push(lineOf(`call ${nameOf(step.method)}`, outcome));
  }
  await server.close();
  return lines;
}

export async function probeFeatures(open: () => Promise<Opened>, settle: Subject['settle'] = isExact): Promise<Line[]> {
  let server = await open();
  const lines: Line[] = [];
  for (const [i, { section, name, run }] of PROBES.entries()) {
    let outcome = await outcomeOf(async () => {
      await run({ api: server.api, table: await makeTable(server.api, `feature${i}`), settle });
    });
    if (isEnd(outcome)) {
      outcome = { ...outcome, word: ENDED };
      await server.close();
      server = await open();
    }
    lines.push(lineOf(`${section} ${name}`, outcome));
  }
  await server.close();
  return lines;
}

/** `section`: the first word of each line. `large`: also with requests that take a second each. */
export async function probeLimits(
  { api }: Pick<Opened, 'api'>,
  { section, large }: { readonly section: string; readonly large: boolean },
): Promise<Line[]> {
  const lines: Line[] = [];
  const subjectOf = async (id: string): Promise<Subject> => ({ api, table: await makeTable(api, id), settle: isExact });
  for (const [i, probe] of SIZE_PROBES.entries()) {
    if (probe.isLarge && !large) continue;
    const word = await limitOf(probe, await subjectOf(`limit${i}`));
    lines.push(lineOf(`${section} ${probe.name}`, { word, detail: '' }));
  }
  const word = await negativeTimestampsOf(await subjectOf('negative'));
  lines.push(lineOf(`${section} timestamps below 0`, { word, detail: '' }));
  return lines;
}
