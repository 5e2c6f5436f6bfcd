/**
 * MutateRow, CheckAndMutateRow and ReadModifyWriteRow of clients: passed on as bytes where another server has the row,
 * otherwise decoded and carried out by the service.
 */
import type { RequestContext } from '../../env/index.ts';
import type { AppProfileRules, RawCallPasser, RawWrite } from '../../service/index.ts';
import type { RequestDecoder } from '../codec/request-decoder.ts';
import { readTarget, type RowTarget } from '../codec/target-reader.ts';
import { withAnswerSpace } from './answer-space.ts';
import type { DecodedWrites } from './decoded-writes.ts';
import { withAppProfile } from './target.ts';

/** The number of the field app_profile_id in each request. */
const APP_PROFILE_FIELDS: Readonly<Record<RawWrite['method'], number>> = {
  mutateRow: 4,
  checkAndMutateRow: 7,
  readModifyWriteRow: 4,
};

export interface RowWritesParts {
  readonly decoded: DecodedWrites;
  readonly decoder: RequestDecoder;
  readonly rules: AppProfileRules | undefined;
  /** Undefined where no other server can be called so. */
  readonly passer: RawCallPasser | undefined;
}

export class RowWrites {
  readonly #decoded: DecodedWrites;
  readonly #decoder: RequestDecoder;
  readonly #rules: AppProfileRules | undefined;
  readonly #passer: RawCallPasser | undefined;

  constructor({ decoded, decoder, rules, passer }: RowWritesParts) {
    this.#decoded = decoded;
    this.#decoder = decoder;
    this.#rules = rules;
    this.#passer = passer;
  }

  /** The answer, in one buffer or several. */
  write(method: RawWrite['method'], context: RequestContext, bytes: Buffer): Promise<Uint8Array | readonly Buffer[]> {
    const passer = this.#passer;
    if (passer === undefined) return this.#decoded.write(method, context, bytes);
    const target = readTarget(bytes, APP_PROFILE_FIELDS[method], this.#decoder);
    if (target === undefined || !passer.isElsewhere(target.table, target.row))
      return this.#decoded.write(method, context, bytes);
    return this.#passOn(passer, method, target, context, bytes).then(
      (answer) => answer ?? this.#decoded.write(method, context, bytes),
    );
  }

  /** Undefined where the other server has done nothing. */
  #passOn(
    passer: RawCallPasser,
    method: RawWrite['method'],
    { table, row, appProfile }: RowTarget,
    given: RequestContext,
    request: Buffer,
  ): Promise<Uint8Array | undefined> {
    if (given.notes !== undefined) given.notes.target = table;
    const kind = method === 'mutateRow' ? 'write' : 'transaction';
    const context = withAppProfile(given, this.#rules, kind, table, appProfile);
    if (method !== 'readModifyWriteRow')
      return passer.write(context, { method, table, row, maxAnswerBytes: undefined, request });
    return withAnswerSpace(context.reservation, (maxAnswerBytes) =>
      passer.write(context, { method, table, row, maxAnswerBytes, request }),
    );
  }
}
