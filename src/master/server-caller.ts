/**
 * The calls of a master to tablet servers: each names the incarnation that it is meant for, and has the epoch of the
 * master's lock and a deadline.
 */
import { BigtableError, Code, toBigtableError, unavailable } from '../base/index.ts';
import type { Env, LockHandle, RequestContext } from '../env/index.ts';
import {
  callServer,
  checkProtocol,
  type FromMaster,
  isDeposed,
  type PeerFile,
  PROTOCOL,
  type ServerStatus,
  type TabletServerCalls,
} from '../protocol/index.ts';

/** A status is answered from memory. A server that takes longer counts as silent, and is called again. */
const STATUS_MS = 1000;
/** Deadline of all other calls. */
export const CALL_MS = 5000;

/** So many calls take half a minute. */
const STALL_CALLS = 6;

/** A tablet server by its incarnation. */
export type ServerName = Pick<PeerFile, 'name' | 'address'>;
export type Message<M extends keyof TabletServerCalls> = Omit<TabletServerCalls[M]['message'], keyof FromMaster>;

export class ServerCaller {
  readonly #env: Env;
  readonly #lock: LockHandle;
  #ended = false;

  /** `lock`: the master's. */
  constructor(env: Env, lock: LockHandle) {
    this.#env = env;
    this.#lock = lock;
  }

  /** The master ends: no call is repeated. */
  end(): void {
    this.#ended = true;
  }

  /** Calls that incarnation of the server. DEADLINE_EXCEEDED if it does not answer in time. */
  call<M extends keyof TabletServerCalls>(
    { name, address }: ServerName,
    method: M,
    message: Message<M>,
    context: RequestContext,
    timeoutMs = CALL_MS,
  ): Promise<TabletServerCalls[M]['answer']> {
    const { transport, clock } = this.#env;
    const deadlineMs = Math.min(context.deadlineMs, clock.monotonicMs() + timeoutMs);
    const stamped = { ...message, to: name, masterEpoch: this.#lock.epoch };
    return callServer(transport, address, method, stamped, { ...context, deadlineMs });
  }

  /**
   * A call that may take minutes, and that joins its own work when it is repeated: called again for as long as the
   * server answers a status. `onStall`: called after each half a minute.
   */
  async callUntilDone<M extends 'load' | 'unload' | 'flush' | 'sortLog' | 'backUpTablets' | 'copyFile'>(
    server: ServerName,
    method: M,
    message: Message<M>,
    context: RequestContext,
    onStall?: () => void,
  ): Promise<TabletServerCalls[M]['answer']> {
    for (let calls = 1; ; calls++) {
      try {
        return await this.call(server, method, message, context);
      } catch (thrown) {
        const error = toBigtableError(thrown);
        const isOver = this.#ended || context.deadlineMs <= this.#env.clock.monotonicMs();
        if (error.code !== Code.DEADLINE_EXCEEDED || isOver) throw error;
        if ((await this.status(server, context, { brief: true })) instanceof BigtableError) throw error;
        if (calls % STALL_CALLS === 0) onStall?.();
      }
    }
  }

  /** Returns the reason why it does not answer, if it does not. `brief`: without its tablets. */
  async status(
    peer: ServerName & { readonly protocol?: PeerFile['protocol'] },
    context: RequestContext,
    { brief }: { readonly brief: boolean },
  ): Promise<ServerStatus | BigtableError> {
    try {
      checkProtocol(`tablet server ${peer.name}`, peer.protocol ?? PROTOCOL);
      const status = await this.call(peer, 'status', brief ? { brief } : {}, context, STATUS_MS);
      if (status.name !== peer.name) return unavailable(`another server, ${status.name}, answers at its address`);
      if (!status.locked) return unavailable('its lease may have lapsed');
      return status;
    } catch (thrown) {
      if (!(thrown instanceof BigtableError)) throw thrown;
      // a death is an event of its own
      if (context.signal?.aborted || isDeposed(thrown)) throw thrown;
      return thrown;
    }
  }
}
