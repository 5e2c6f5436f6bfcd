/** Requests that change rows: read, checked and completed, then carried out. */
import type { RequestContext } from '../../env/index.ts';
import type { AuthorizedView, CallKind, RowService } from '../../service/index.ts';
import type { ApiEnv } from '../../wire/index.ts';
import { MutationReader } from '../codec/mutation-reader.ts';
import type { RequestDecoder } from '../codec/request-decoder.ts';
import { withAppProfile } from './target.ts';
import { Views } from './views.ts';

/** What a request changes, and how. */
export interface ChangeTarget {
  readonly context: RequestContext;
  readonly table: string;
  /** The view through which the table is changed; undefined for the table itself. */
  readonly view: AuthorizedView | undefined;
}

export class ChangeRequests {
  readonly #service: RowService;
  readonly #env: ApiEnv;
  readonly #decoder: RequestDecoder;
  readonly #views: Views;

  constructor(service: RowService, env: ApiEnv, decoder: RequestDecoder) {
    this.#service = service;
    this.#env = env;
    this.#decoder = decoder;
    this.#views = new Views(service, decoder);
  }

  /** Reads the request and carries it out, synchronously where nothing has to be waited for first, as usual. */
  carryOut<Q, A>(
    given: RequestContext,
    bytes: Buffer,
    kind: CallKind,
    read: (reader: MutationReader) => Q | Promise<Q>,
    work: (target: ChangeTarget, request: Q) => Promise<A>,
  ): Promise<A> {
    const reader = new MutationReader(bytes, this.#decoder, this.#env.clock);
    const carryOut = (request: Q): Promise<A> => {
      const target = this.#target(given, kind, reader);
      return target instanceof Promise ? target.then((found) => work(found, request)) : work(target, request);
    };
    const request = read(reader);
    return request instanceof Promise ? request.then(carryOut) : carryOut(request);
  }

  /** Checks and completes a request that has been read, before it is carried out. */
  #target(given: RequestContext, kind: CallKind, reader: MutationReader): ChangeTarget | Promise<ChangeTarget> {
    const { table, authorizedView } = reader.target;
    if (authorizedView === '' && reader.untruncated.length === 0) return this.#profiled(given, kind, reader, table);
    return this.#complete(given, kind, reader);
  }

  async #complete(given: RequestContext, kind: CallKind, reader: MutationReader): Promise<ChangeTarget> {
    const { table, authorizedView } = reader.target;
    const view = authorizedView === '' ? undefined : await this.#views.find(given, authorizedView, table);
    const target = this.#profiled(given, kind, reader, view?.table ?? table, view);
    if (reader.untruncated.length > 0) {
      const schema = await this.#service.getTable(target.context, target.table);
      if (schema.granularity === 'millis') reader.truncate();
    }
    return target;
  }

  #profiled(
    given: RequestContext,
    kind: CallKind,
    reader: MutationReader,
    table: string,
    view?: AuthorizedView,
  ): ChangeTarget {
    if (given.notes !== undefined) given.notes.target = table;
    const context = withAppProfile(given, this.#service.appProfiles, kind, table, reader.target.appProfile);
    return { context, table, view };
  }
}
