/**
 * Calls that name a later version of their table's schema than this server knows: they wait until it has read the file.
 *
 * Invariant: no call is carried out under an earlier schema than the one that its caller knows. So what a client writes
 * into a family that was created again is never acknowledged under the family's former generation
 * (docs/decisions/0052-confirmed-changes.md).
 *
 * Hot path: a call that names no later version makes no promise.
 */
import { assert, toBigtableError } from '../base/index.ts';
import { callRefused, type Clock, pullStreamOf, type RequestContext, within } from '../env/index.ts';
import type { SchemaCache } from '../locator/index.ts';
import type { OfSchema } from '../protocol/index.ts';
import { GatedStream } from './gated-stream.ts';

type RowCall = OfSchema & { readonly tableId: string };

export interface LaterSchemasParts {
  readonly schemas: SchemaCache;
  readonly clock: Clock;
}

export class LaterSchemas {
  readonly #parts: LaterSchemasParts;

  constructor(parts: LaterSchemasParts) {
    this.#parts = parts;
  }

  /** The call as a handler takes it. */
  call<M extends RowCall, A>(
    answer: (message: M, context: RequestContext) => Promise<A>,
  ): (message: M, context: RequestContext) => Promise<A> {
    return (message, context) =>
      this.#isBehind(message)
        ? this.#reach(message, context).then(() => answer(message, context))
        : answer(message, context);
  }

  /** The stream as a handler takes it. */
  stream<M extends RowCall, I>(
    answer: (message: M, context: RequestContext) => AsyncIterable<I>,
  ): (message: M, context: RequestContext) => AsyncIterable<I> {
    return (message, context) => {
      if (!this.#isBehind(message)) return answer(message, context);
      let reaching: Promise<void> | undefined = this.#reach(message, context);
      // where no pull comes, no reader waits for it
      reaching.catch(() => {});
      const gate = (): Promise<void> | undefined => {
        const before = reaching;
        reaching = undefined;
        return before;
      };
      return new GatedStream(gate, () => pullStreamOf(answer(message, context)));
    };
  }

  /** A table that is not known here is not served here: the call is refused anyway. */
  #isBehind({ tableId, schemaVersion }: RowCall): boolean {
    if (schemaVersion === undefined) return false;
    const known = this.#parts.schemas.versionOf(tableId);
    return known !== undefined && known < schemaVersion;
  }

  async #reach({ tableId, schemaVersion = 0 }: RowCall, context: RequestContext): Promise<void> {
    const { schemas, clock } = this.#parts;
    const schema = schemas.byId(tableId);
    assert(schema !== undefined, 'a table of which a version is known is known');
    const { name } = schema;
    const reading = schemas.reach(tableId, name, schemaVersion).catch((thrown: unknown) => {
      throw callRefused(`a later schema of table ${name} cannot be read: ${toBigtableError(thrown).message}`);
    });
    await within(reading, context, clock);
  }
}
