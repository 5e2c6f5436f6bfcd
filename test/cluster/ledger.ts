/**
 * Clients that write rows spread over many tablets, and read them again: an acknowledged write is there, and no read
 * returns an older one. Each row has one writer, which reads it too.
 *
 * A row whose last write has an unknown outcome may have either value, at any time; it is written no more.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { RowMutation } from '../../src/embedded/index.ts';
import { SeededRandom } from '../../src/env/index.ts';
import { outcomeOf } from '../linearizability/calls.ts';
import { CALL_TIMEOUT_MS } from './contention.ts';
import { Doors } from './doors.ts';
import type { Failures } from './failures.ts';

const TABLE = 'ledger';
const COLUMN = 'd:v';
const TABLETS = 12;
const WRITERS = 3;
const MAX_THINK_MS = 20;
const MAX_THINK_AFTER_FAILURE_MS = 1000;
const VALUE_BYTES = 400;
/** The share of the writes that write a row again, and that of the reads among all calls. */
const AGAIN = 0.2;
const READS = 0.4;
const MAX_FINDINGS = 20;
const SCAN_TIMEOUT_MS = 60_000;

interface Entry {
  /** The value that was acknowledged last; undefined: none was. */
  acknowledged: string | undefined;
  /** The value of a write of unknown outcome. */
  perhaps: string | undefined;
}

export interface LedgerCounts {
  acknowledged: number;
  unknown: number;
  reads: number;
  /** Rows that were compared in the end. */
  compared: number;
}

export class Ledger {
  readonly counts: LedgerCounts = { acknowledged: 0, unknown: 0, reads: 0, compared: 0 };
  /** Writes that were lost, and reads of older values. */
  readonly findings: string[] = [];
  readonly #clients: readonly Doors[];
  readonly #random: SeededRandom;
  readonly #failures: Failures;
  readonly #entries = new Map<string, Entry>();
  readonly #work: Promise<void>[] = [];
  #values = 0;
  #isEnding = false;

  private constructor(clients: readonly Doors[], random: SeededRandom, failures: Failures) {
    this.#clients = clients;
    this.#random = random;
    this.#failures = failures;
  }

  static async open(addresses: readonly string[], seed: number, failures: Failures): Promise<Ledger> {
    const random = new SeededRandom(seed);
    const clients = await Promise.all(Array.from({ length: WRITERS }, () => Doors.at(addresses, random)));
    const splits = Array.from({ length: TABLETS - 1 }, (_, i) => tablet(i + 1));
    await clients[0]!.database.createTable(TABLE, { families: { d: { maxVersions: 1 } }, splits });
    return new Ledger(clients, random, failures);
  }

  /** A row in each tablet, which no client writes. */
  get probes(): readonly string[] {
    return Array.from({ length: TABLETS }, (_, i) => `${tablet(i)}/probe`);
  }

  get table(): string {
    return TABLE;
  }

  begin(): void {
    for (const [i, client] of this.#clients.entries()) this.#work.push(this.#writeAndRead(client, i));
  }

  /** Ends the work and compares all rows with what was written. */
  async end(): Promise<void> {
    this.#isEnding = true;
    await Promise.all(this.#work);
    const found = new Map<string, string>();
    const rows = this.#clients[0]!.any().table(TABLE).scan({ timeoutMs: SCAN_TIMEOUT_MS });
    for await (const row of rows) found.set(row.name, row.cells[0]!.text);
    for (const [name, entry] of this.#entries) {
      this.counts.compared++;
      this.#compare(name, entry, found.get(name), 'in the end');
      found.delete(name);
    }
    for (const name of found.keys()) this.#find(`${name} is there though nobody wrote it`);
  }

  async close(): Promise<void> {
    await Promise.all(this.#clients.map((client) => client.close()));
  }

  async #writeAndRead(client: Doors, writer: number): Promise<void> {
    const names: string[] = [];
    while (!this.#isEnding) {
      const known = names[Math.floor(this.#random.float() * names.length)];
      const isAnswered =
        known !== undefined && this.#random.float() < READS
          ? await this.#read(client, known)
          : await this.#write(client, this.#nameToWrite(known, names, writer));
      await pause(this.#random.float() * (isAnswered ? MAX_THINK_MS : MAX_THINK_AFTER_FAILURE_MS));
    }
  }

  #nameToWrite(known: string | undefined, names: string[], writer: number): string {
    if (known !== undefined && this.#random.float() < AGAIN && this.#entries.get(known)!.perhaps === undefined)
      return known;
    const name = `${tablet(Math.floor(this.#random.float() * TABLETS))}/${writer}-${names.length}`;
    names.push(name);
    this.#entries.set(name, { acknowledged: undefined, perhaps: undefined });
    return name;
  }

  async #write(client: Doors, name: string): Promise<boolean> {
    const entry = this.#entries.get(name)!;
    const value = `${this.#values++}`.padEnd(VALUE_BYTES, '.');
    const isAnswered = await this.#call(client, `write ${name}`, () =>
      client.database.table(TABLE).apply(new RowMutation(name).set(COLUMN, value), { timeoutMs: CALL_TIMEOUT_MS }),
    );
    if (isAnswered) {
      this.counts.acknowledged++;
      entry.acknowledged = value;
    } else {
      this.counts.unknown++;
      entry.perhaps = value;
    }
    return isAnswered;
  }

  #read(client: Doors, name: string): Promise<boolean> {
    return this.#call(client, `read ${name}`, async () => {
      const row = await client.database.table(TABLE).get(name, { timeoutMs: CALL_TIMEOUT_MS });
      this.counts.reads++;
      this.#compare(name, this.#entries.get(name)!, row?.cells[0]?.text, 'a read');
    });
  }

  async #call(client: Doors, what: string, call: () => Promise<unknown>): Promise<boolean> {
    try {
      await call();
      return true;
    } catch (error) {
      const outcome = outcomeOf(error);
      client.note(outcome);
      if (outcome.kind !== 'answered') this.#failures.note(`${what}: ${outcome.code}: ${outcome.message}`);
      return false;
    }
  }

  #compare(name: string, { acknowledged, perhaps }: Entry, found: string | undefined, when: string): void {
    if (found === acknowledged || (found !== undefined && found === perhaps)) return;
    this.#find(
      `${name}, ${when}: found ${short(found)}, acknowledged ${short(acknowledged)}, perhaps ${short(perhaps)}`,
    );
  }

  #find(what: string): void {
    if (this.findings.length < MAX_FINDINGS) this.findings.push(what);
  }
}

const tablet = (i: number): string => `t${String(i).padStart(2, '0')}`;
const short = (value: string | undefined): string => (value === undefined ? 'nothing' : value.slice(0, 10));
