/** Requests that change rows: read, checked and completed, then carried out. */
import type { RequestContext } from '../../env/index.ts';
import type { CallKind, Service } from '../../service/index.ts';
import type { ApiEnv } from '../../wire/index.ts';
import { MutationReader } from '../codec/mutation-reader.ts';
import type { RequestDecoder } from '../codec/request-decoder.ts';
import { refuseAuthorizedView, withAppProfile } from './target.ts';

type ChangeService = Pick<Service, 'getTable' | 'appProfiles'>;

export class ChangeRequests {
  readonly #service: ChangeService;
  readonly #env: ApiEnv;
  readonly #decoder: RequestDecoder;

  constructor(service: ChangeService, env: ApiEnv, decoder: RequestDecoder) {
    this.#service = service;
    this.#env = env;
    this.#decoder = decoder;
  }

  /** Reads the request and carries it out, synchronously where nothing has to be waited for first, as usual. */
  carryOut<Q, A>(
    given: RequestContext,
    bytes: Buffer,
    kind: CallKind,
    read: (reader: MutationReader) => Q | Promise<Q>,
    work: (context: RequestContext, request: Q, table: string) => Promise<A>,
  ): Promise<A> {
    const reader = new MutationReader(bytes, this.#decoder, this.#env.clock);
    const carryOut = (request: Q): Promise<A> => {
      const { table } = reader.target;
      if (given.notes !== undefined) given.notes.target = table;
      const context = this.#prepare(given, kind, reader);
      return context instanceof Promise
        ? context.then((prepared) => work(prepared, request, table))
        : work(context, request, table);
    };
    const request = read(reader);
    return request instanceof Promise ? request.then(carryOut) : carryOut(request);
  }

  /** Checks and completes a request that has been read, before it is carried out. */
  #prepare(given: RequestContext, kind: CallKind, reader: MutationReader): RequestContext | Promise<RequestContext> {
    const { table, appProfile, authorizedView } = reader.target;
    refuseAuthorizedView(authorizedView);
    const context = withAppProfile(given, this.#service.appProfiles, kind, table, appProfile);
    return reader.untruncated.length > 0 ? this.#truncate(context, reader) : context;
  }

  async #truncate(context: RequestContext, reader: MutationReader): Promise<RequestContext> {
    const schema = await this.#service.getTable(context, reader.target.table);
    if (schema.granularity === 'millis') reader.truncate();
    return context;
  }
}
