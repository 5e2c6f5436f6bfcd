/** Quotas, which the steward sets, meets and removes. */
import type { BigtableError } from '../../src/embedded/index.ts';
import type { Mutation } from '../../src/model/index.ts';
import { failureOf, TRY_AGAIN_MS } from './failure-of.ts';
import { ABSENT } from './register.ts';
import { FAMILIES, ROWS, type StewardRecords, TABLE } from './steward-records.ts';

/** Bytes of a value that a quota of some values refuses soon. */
const VALUE_BYTES = 400;
const SOME_VALUES = 20;

const QUOTAS = ['the quota of g', `the quota of ${TABLE}`];

export class StewardQuotas {
  /** How many writes were refused. */
  met = 0;
  readonly #records: StewardRecords;

  constructor(records: StewardRecords) {
    this.#records = records;
  }

  /** A quota is set, met and removed. */
  async meet(isOver: () => boolean): Promise<void> {
    const family = this.#records.random.float() < 0.5 ? 'g' : undefined;
    const isSpacious = this.#records.random.float() < 0.4;
    const quotaBytes = isSpacious ? SOME_VALUES * VALUE_BYTES : 1;
    const set = (bytes: number | undefined): Promise<void> =>
      this.#records.client.setQuota(this.#records.context(), TABLE, { family, quotaBytes: bytes });
    const what = `the quota of ${family ?? TABLE}`;
    const register = this.#records.register(what);
    await this.#records.make(what, register, String(quotaBytes), () => set(quotaBytes));
    const isKnown = register.known === String(quotaBytes);
    for (let i = 0; i < (isSpacious ? SOME_VALUES : 3); i++) {
      const failure = await this.#add(i);
      if (failure === undefined && !isSpacious && isKnown) this.#records.found(`a write is answered beyond ${what}`);
      if (!isRefusal(failure)) continue;
      this.met++;
      if (isSpacious) break;
    }
    const kept = await this.#write({ kind: 'deleteFromRow' });
    if (isRefusal(kept)) this.#records.found(`a deletion is refused by a quota: ${kept?.message}`);
    await this.judgeUsage();
    while (!(await this.#records.make(what, register, ABSENT, () => set(undefined))) && !isOver())
      await this.#records.pause(TRY_AGAIN_MS);
    const failure = await this.#add(0);
    const areNone = QUOTAS.every((each) => this.#records.register(each).known === ABSENT);
    if (isRefusal(failure) && areNone)
      this.#records.found(`a write is refused by a quota that was removed: ${failure?.message}`);
  }

  /** Adds a cell to both families: by one call or another. */
  #add(number: number): Promise<BigtableError | undefined> {
    const value = Buffer.alloc(VALUE_BYTES, this.#records.newValue());
    const cells = FAMILIES.map(
      (family): Mutation => ({ kind: 'setCell', family, qualifier: 'x', timestamp: undefined, value }),
    );
    const row = this.#records.oneOf(ROWS);
    const context = this.#records.context();
    if (number % 4 === 1)
      return failureOf(async () => {
        const [failure] = await this.#records.client.mutateRows(context, TABLE, [{ row, mutations: cells }]);
        if (failure !== undefined) throw failure;
      });
    if (number % 4 === 2)
      return failureOf(() => {
        const rules = FAMILIES.map(
          (family) => ({ family, qualifier: 'y', change: { kind: 'append', suffix: value } }) as const,
        );
        return this.#records.client.readModifyWriteRow(context, TABLE, row, rules);
      });
    if (number % 4 === 3)
      return failureOf(() =>
        this.#records.client.checkAndMutateRow(context, { table: TABLE, row, whenTrue: cells, whenFalse: cells }),
      );
    return this.#write(...cells);
  }

  #write(...mutations: readonly Mutation[]): Promise<BigtableError | undefined> {
    return failureOf(() =>
      this.#records.client.mutateRow(this.#records.context(), TABLE, { row: this.#records.oneOf(ROWS), mutations }),
    );
  }

  async judgeUsage(): Promise<void> {
    const failure = await failureOf(async () => {
      const { families, table } = await this.#records.client.tableUsage(this.#records.context(), TABLE);
      const names = families.map((each) => each.family).join(', ');
      if (names !== FAMILIES.join(', ')) this.#records.found(`the usage is that of the families ${names}`);
      const quotas = [families[0]?.quotaBytes, table?.quotaBytes];
      for (const [i, quota] of QUOTAS.entries())
        this.#records.judge(quota, this.#records.register(quota), String(quotas[i] ?? ABSENT));
      for (const each of families)
        for (const [what, count] of Object.entries(each))
          if (typeof count === 'number' && !(count >= 0))
            this.#records.found(`${what} of family ${each.family} is ${count}`);
    });
    if (failure !== undefined) this.#records.judgeFailure('a reading of the usage', failure);
  }
}

function isRefusal(failure: BigtableError | undefined): boolean {
  return failure?.codeName === 'RESOURCE_EXHAUSTED' && failure.message.includes('quota');
}
