/**
 * Has tablet servers load the tablets that were given to them. A call names a few tablets, and a server has a few calls
 * under way: so a server that is given very many loads them one after another, and one that is slow holds up no other.
 * A call that takes long makes room for the next one while it goes on.
 *
 * Invariant: METADATA's own tablets wait for no others. The loads of a server end when it dies.
 */
import { assert, type BigtableError, toBigtableError, unavailable } from '../base/index.ts';
import { type Clock, fromPlainError, type RequestContext } from '../env/index.ts';
import type { SchemaCache } from '../locator/index.ts';
import { isMetadataTablet, type MetadataKey, parseMetadataKey } from '../metadata/index.ts';
import { isDeposed, type SchemaRef, type TabletRef } from '../protocol/index.ts';
import type { LoadFailures } from './load-failures.ts';
import type { LiveServer } from './live-server.ts';
import { CALL_MS, type ServerCaller } from './server-caller.ts';

/** The number of tablets that one call names. */
const MAX_TABLETS_PER_CALL = 16;
/** The number of calls that a server has under way, but for those that take longer than CALL_MS. */
const MAX_CALLS = 4;

export interface LoadsOptions {
  readonly clock: Clock;
  readonly caller: ServerCaller;
  readonly schemas: SchemaCache;
  readonly failures: LoadFailures;
  readonly context: () => RequestContext;
  /** Called after each half a minute that the load of a tablet of METADATA takes. */
  readonly onMetadataStall: () => void;
}

interface Load {
  readonly ref: TabletRef;
  /** Called when the tablet is served, or with the reason why it is not. Without effect after the first time. */
  readonly onEnd: (failure: BigtableError | undefined) => void;
}

/** The loads of one server. */
interface Loading {
  readonly server: LiveServer;
  readonly waiting: Load[];
  readonly underWay: Set<Load>;
  /** Calls under way that make no room yet. */
  calls: number;
  /** True when a look at what waits is due. */
  isDue: boolean;
}

export class Loads {
  readonly #options: LoadsOptions;
  readonly #byServer = new Map<string, Loading>();

  constructor(options: LoadsOptions) {
    this.#options = options;
  }

  /** Resolves when the server serves the tablet, or with the reason why it does not. */
  load(server: LiveServer, ref: TabletRef): Promise<BigtableError | undefined> {
    assert(ref.epoch > 0, 'a tablet is loaded by a server that it was given to');
    return new Promise((onEnd) => {
      const loading = this.#loadingOf(server);
      if (isMetadataTablet(ref.key)) void this.#call(loading, [{ ref, onEnd }]);
      else {
        loading.waiting.push({ ref, onEnd });
        this.#lookLater(loading);
      }
    });
  }

  /** The tablet's row is gone: it is not to be loaded any more. */
  isGone(key: MetadataKey): void {
    this.#options.failures.gone(key);
  }

  /** The server is dead: its loads end. */
  endAt(name: string): void {
    const loading = this.#byServer.get(name);
    if (loading === undefined) return;
    this.#byServer.delete(name);
    for (const { onEnd } of [...loading.waiting.splice(0), ...loading.underWay])
      onEnd(unavailable(`tablet server ${name} is dead`));
  }

  /** All loads end. */
  end(): void {
    for (const name of [...this.#byServer.keys()]) this.endAt(name);
  }

  #loadingOf(server: LiveServer): Loading {
    let loading = this.#byServer.get(server.name);
    if (loading === undefined) {
      loading = { server, waiting: [], underWay: new Set(), calls: 0, isDue: false };
      this.#byServer.set(server.name, loading);
    }
    return loading;
  }

  /** Once the loads that are requested now are all there: they share calls. */
  #lookLater(loading: Loading): void {
    if (loading.isDue) return;
    loading.isDue = true;
    void Promise.resolve().then(() => {
      loading.isDue = false;
      this.#look(loading);
    });
  }

  #look(loading: Loading): void {
    while (loading.calls < MAX_CALLS && loading.waiting.length > 0) {
      loading.calls++;
      let isHeld = true;
      const makeRoom = (): void => {
        if (!isHeld) return;
        isHeld = false;
        loading.calls--;
        assert(loading.calls >= 0, 'a call makes room once');
        this.#lookLater(loading);
      };
      const slow = this.#options.clock.timer(CALL_MS, makeRoom);
      void this.#call(loading, loading.waiting.splice(0, MAX_TABLETS_PER_CALL)).then(() => {
        slow.cancel();
        makeRoom();
      });
    }
  }

  /** One call. A failure of it is that of each of its tablets. */
  async #call({ server, underWay }: Loading, loads: readonly Load[]): Promise<void> {
    const { caller, context, failures, onMetadataStall } = this.#options;
    assert(loads.length > 0 && loads.length <= MAX_TABLETS_PER_CALL, 'a call names a few tablets');
    for (const load of loads) underWay.add(load);
    const tablets = loads.map(({ ref }) => ref);
    const isOfMetadata = tablets.some(({ key }) => isMetadataTablet(key));
    assert(!isOfMetadata || tablets.length === 1, "METADATA's tablets are loaded by calls of their own");
    const onStall = isOfMetadata ? onMetadataStall : undefined;
    const answers = await caller
      .callUntilDone(server, 'load', { tablets, schemas: this.#schemasOf(tablets) }, context(), onStall)
      .then(
        (answer) => answer.map((error) => error && fromPlainError(error)),
        (thrown: unknown) => tablets.map(() => notDone(toBigtableError(thrown))),
      );
    for (const [i, load] of loads.entries()) {
      const failure = answers[i];
      const { ref, onEnd } = load;
      underWay.delete(load);
      if (failure === undefined) {
        server.serves(ref);
        failures.loaded(ref);
      } else {
        failures.failed(ref, failure);
      }
      onEnd(failure);
    }
  }

  /** Those of the tablets' tables, as they are now. */
  #schemasOf(tablets: readonly TabletRef[]): SchemaRef[] {
    const { schemas } = this.#options;
    const ids = new Set(tablets.map(({ key }) => parseMetadataKey(key).tableId));
    return [...ids].flatMap((tableId) => {
      const version = schemas.versionOf(tableId);
      if (version === undefined) return [];
      const schema = schemas.byId(tableId);
      assert(schema !== undefined, 'a schema of which a version is known is known');
      return [{ tableId, tableName: schema.name, version }];
    });
  }
}

/** The call was not carried out, for another reason than "released at this epoch", which is an answer. */
function notDone(error: BigtableError): BigtableError {
  return isDeposed(error) ? error : unavailable(error.message, error);
}
