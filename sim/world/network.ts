/**
 * The simulated network: connections between processes, over which calls and streams run (PortPeer) with the messages
 * of calls between processes (CALL_CODEC). A connection keeps the order of its messages, as TCP does; messages of different connections overtake one
 * another. What is lost breaks the connection: its calls fail with an unknown outcome, on each side when that side
 * notices it.
 *
 * Directions can be cut one by one. A call over a cut connection fails when the connection is given up, or at its
 * deadline, whichever comes first.
 */
import { BigtableError, Code, unavailable } from '../../src/base/index.ts';
import {
  ByteBudget,
  type CallHandler,
  ChangedStream,
  type Clock,
  LocalTransport,
  Metrics,
  notReached,
  pullStreamOf,
  type RequestContext,
  type Transport,
  within,
} from '../../src/env/index.ts';
import { PortPeer } from '../../src/platform/index.ts';
import { CALL_CODEC, type CallCodec, encodedCall, encodedHandler, encodedStream } from '../../src/protocol/index.ts';
import type { SimProcess } from './process.ts';
import type { Scheduler } from './scheduler.ts';

const MIB = 1 << 20;
/** A connection on which nothing arrives is given up after this long, about. */
const GIVEN_UP_MS = 5000;
const CONNECT_TIMEOUT_MS = 3000;
/** A message of a connection that was given up arrives within this time. */
const LATE_COPY_MS = 8000;
const OVERTAKEN_MS = 1000;

/** How messages fare now. A run's faults change it. */
export interface Weather {
  minDelayMs: number;
  maxDelayMs: number;
  /** The share of messages that are late by up to `lateMs`. */
  lateShare: number;
  lateMs: number;
  /** The share of messages that are lost, and break their connection. */
  lostShare: number;
  /**
   * The share of messages whose sender gives up the connection while they are on their way, and may send them again:
   * they arrive late, by up to LATE_COPY_MS, next to their copies.
   */
  givenUpShare: number;
  /**
   * The share of calls, and of answers, that later ones overtake, by up to OVERTAKEN_MS: calls are streams of their own
   * on a connection, which keeps the order of each alone.
   */
  overtakenShare: number;
}

/** A call that has reached its handler. */
export interface NotedCall {
  readonly process: SimProcess;
  readonly method: string;
  readonly message: unknown;
  readonly begunMs: number;
}

/** What happens to one call. */
export interface CallFate {
  /** It is handled so much later. */
  readonly lateMs?: number;
  /** Its answer is lost, which its caller learns so much later. Streams lose none. */
  readonly answerLostMs?: number;
  /** It is not reached. Streams are. */
  readonly isLost?: boolean;
  /** It is handled once that is resolved. */
  readonly after?: Promise<unknown>;
  /** Called with its answer, if it has one, before that is sent. Streams have none. */
  readonly afterAnswer?: (answer: unknown) => void;
  /** Called with each part of a stream, and with undefined at its end: what follows waits for what it returns. */
  readonly afterPart?: (part: unknown) => Promise<unknown> | undefined;
}

interface AwaitedCall {
  readonly method: string;
  readonly run: (machine: string, message: unknown) => CallFate | undefined;
  readonly isMeant: (message: unknown) => boolean;
}

type Direction = `${string}>${string}`;

export class SimNetwork {
  readonly weather: Weather = {
    minDelayMs: 0.05,
    maxDelayMs: 0.5,
    lateShare: 0,
    lateMs: 0,
    lostShare: 0,
    givenUpShare: 0,
    overtakenShare: 0,
  };
  readonly counts = { messages: 0, lost: 0, givenUp: 0, overtaken: 0, broken: 0, refused: 0 };
  readonly #scheduler: Scheduler;
  readonly #draw;
  /** Called with each call that reaches its handler. */
  onCall: (method: string, message: unknown) => void = () => {};
  /** By method, the machine that was called last. */
  readonly calledLast = new Map<string, string>();
  readonly #awaited = new Set<AwaitedCall>();
  /** Called with the answer to each call, and with each part of a stream. */
  onAnswer: (call: NotedCall, answer: unknown) => void = () => {};
  /** Directions, by machines. */
  readonly cutDirections = new Set<Direction>();
  readonly #listeners = new Map<string, { readonly process: SimProcess; readonly node: Node }>();

  constructor(scheduler: Scheduler) {
    this.#scheduler = scheduler;
    this.#draw = scheduler.fork('network');
  }

  /** The transport of a process, for the calls of masters and tablet servers. */
  transportOf(process: SimProcess): Transport {
    return new Node(this, process, CALL_CODEC, 64 * MIB);
  }

  /**
   * Another one, with connections of its own, whose messages are plain data. `budgetBytes`: the calls that reach the
   * process reserve them.
   */
  plainTransportOf(process: SimProcess, budgetBytes: number): Transport {
    return new Node(this, process, undefined, budgetBytes);
  }

  /** Cuts one direction: nothing of the machine `from` reaches `to` until it is joined again. `*`: all machines. */
  cut(from: string, to: string): void {
    this.cutDirections.add(`${from}>${to}`);
  }

  join(from: string, to: string): void {
    this.cutDirections.delete(`${from}>${to}`);
  }

  joinAll(): void {
    this.cutDirections.clear();
  }

  /** Calls `run`, once, with the machine that is called next with that method, and such a message. */
  onNextCall(
    method: string,
    run: (machine: string, message: unknown) => void,
    isMeant: (message: unknown) => boolean = () => true,
  ): void {
    const runAlone = (machine: string, message: unknown): undefined => void run(machine, message);
    this.changeNextCall(method, runAlone, isMeant);
  }

  /** The same, where `run` may return what happens to the call. */
  changeNextCall(
    method: string,
    run: (machine: string, message: unknown) => CallFate | undefined,
    isMeant: (message: unknown) => boolean = () => true,
  ): void {
    this.#awaited.add({ method, run, isMeant });
  }

  /** The handler, whose calls and answers are noted. */
  noted(process: SimProcess, handler: CallHandler): CallHandler {
    const arrive = (method: string, message: unknown): CallFate | undefined => {
      this.calledLast.set(method, process.machine);
      let fate: CallFate | undefined;
      for (const awaited of [...this.#awaited])
        if (awaited.method === method && awaited.isMeant(message) && this.#awaited.delete(awaited))
          fate = awaited.run(process.machine, message) ?? fate;
      return fate;
    };
    const begin = (method: string, message: unknown): NotedCall => {
      this.onCall(method, message);
      return { process, method, message, begunMs: this.#scheduler.nowMs };
    };
    const pause = (delayMs: number, what: string): Promise<void> =>
      new Promise((resolve) => process.later(delayMs, what, resolve));
    return {
      call: async (method, message, context) => {
        const { lateMs, answerLostMs, isLost, after, afterAnswer } = arrive(method, message) ?? {};
        if (isLost) throw notReached('the call was lost');
        if (after !== undefined) await after;
        if (lateMs !== undefined || after !== undefined) await pause(lateMs ?? 0, `late ${method}`);
        const call = begin(method, message);
        const answer = await handler.call(method, message, context);
        if (answerLostMs !== undefined) {
          await pause(answerLostMs, `lost answer of ${method}`);
          throw unavailable('the answer was lost');
        }
        this.onAnswer(call, answer);
        afterAnswer?.(answer);
        return answer;
      },
      stream: (method, message, context) => {
        const { lateMs, after, afterPart } = arrive(method, message) ?? {};
        const call = begin(method, message);
        const handled = (): AsyncIterable<unknown> => handler.stream(method, message, context);
        const goOn = (): Promise<void> => pause(0, `late part of ${method}`);
        const begun = afterPart === undefined ? handled : () => heldAfter(handled(), afterPart, goOn);
        const isLate = lateMs !== undefined || after !== undefined;
        const late = async (): Promise<void> => {
          await after;
          await pause(lateMs ?? 0, `late ${method}`);
        };
        const parts = pullStreamOf(isLate ? onceOver(late(), begun) : begun());
        return new ChangedStream(parts, (part) => {
          this.onAnswer(call, part);
          return part;
        });
      },
    };
  }

  listen(address: string, process: SimProcess, node: Node): () => void {
    const now = this.#listeners.get(address);
    if (now !== undefined && !now.process.isDead)
      throw new BigtableError(Code.ALREADY_EXISTS, `address ${JSON.stringify(address)} is served already`);
    const listener = { process, node };
    this.#listeners.set(address, listener);
    return () => {
      if (this.#listeners.get(address) === listener) this.#listeners.delete(address);
    };
  }

  /** Resolves with a connection to the process that serves the address, or rejects: surely nothing was reached. */
  connect(from: SimProcess, address: string, node: Node): Promise<PortPeer> {
    return new Promise((resolve, reject) => {
      const refuse = (delayMs: number): void =>
        from.later(delayMs, `refused ${address}`, () => {
          this.counts.refused++;
          reject(noServerAt(address));
        });
      this.#scheduler.after(this.#delayMs(), undefined, `connect ${from.name} ${address}`, () => {
        const listener = this.#listeners.get(address);
        if (listener === undefined || listener.process.isDead) return refuse(this.#delayMs());
        const to = listener.process;
        if (this.#isCut(from, to) || this.#isCut(to, from)) return refuse(CONNECT_TIMEOUT_MS);
        const [near, far] = this.#pair(from, to);
        listener.node.accept(far);
        from.later(this.#delayMs(), `connected ${address}`, () => {
          if (near.isClosed) reject(noServerAt(address));
          else resolve(node.peerOver(near, address));
        });
      });
    });
  }

  /** Resolves when those that overtake have passed; undefined: none do. */
  overtaken(process: SimProcess): Promise<void> | undefined {
    const { overtakenShare } = this.weather;
    if (overtakenShare === 0 || this.#draw.float() >= overtakenShare) return undefined;
    this.counts.overtaken++;
    return new Promise((resolve) => process.later(this.#draw.float() * OVERTAKEN_MS, 'overtaken', resolve));
  }

  #pair(a: SimProcess, b: SimProcess): [Port, Port] {
    const near = new Port(this, a, b);
    const far = new Port(this, b, a);
    near.other = far;
    far.other = near;
    a.onDeath(() => far.breakLater(this.#delayMs()));
    b.onDeath(() => near.breakLater(this.#delayMs()));
    return [near, far];
  }

  /** Carries one message, or loses it. */
  carry(port: Port, bytes: Uint8Array): void {
    const { weather, counts } = this;
    const { from, to } = port;
    counts.messages++;
    from.acts('message');
    if (this.#isCut(from, to) || this.#draw.float() < weather.lostShare) {
      counts.lost++;
      // neither side learns it before it misses something
      port.breakLater(GIVEN_UP_MS * (0.5 + this.#draw.float()));
      port.other!.breakLater(GIVEN_UP_MS * (0.5 + this.#draw.float()));
      port.isLost = true;
      return;
    }
    if (port.isLost) return;
    let delayMs = this.#delayMs();
    if (this.#draw.float() < weather.givenUpShare) {
      counts.givenUp++;
      delayMs += this.#draw.float() ** 2 * LATE_COPY_MS;
      // the other side notices it after what is on its way
      port.other!.breakLater(delayMs + 1);
      port.breakLater(this.#delayMs());
    }
    // no message overtakes another one of its connection: each arrival takes the first
    port.underWay.push(bytes);
    this.#scheduler.after(delayMs, to, `message ${from.name}`, () => port.other!.arrive(port.underWay.shift()!));
  }

  #isCut({ machine: from }: SimProcess, { machine: to }: SimProcess): boolean {
    const { cutDirections } = this;
    return cutDirections.has(`${from}>${to}`) || cutDirections.has(`${from}>*`) || cutDirections.has(`*>${to}`);
  }

  #delayMs(): number {
    const { minDelayMs, maxDelayMs, lateShare, lateMs } = this.weather;
    const late = this.#draw.float() < lateShare ? this.#draw.float() * lateMs : 0;
    return minDelayMs + this.#draw.float() * (maxDelayMs - minDelayMs) + late;
  }
}

/** One end of a connection, as PortPeer takes it. */
class Port {
  readonly from: SimProcess;
  readonly to: SimProcess;
  other: Port | undefined;
  /** Messages that this end has sent and the other has not received. */
  readonly underWay: Uint8Array[] = [];
  /** A message was lost: those after it never arrive. */
  isLost = false;
  readonly #network: SimNetwork;
  readonly #onMessage: ((bytes: Uint8Array) => void)[] = [];
  readonly #onClose: (() => void)[] = [];
  isClosed = false;
  #isBreaking = false;

  constructor(network: SimNetwork, from: SimProcess, to: SimProcess) {
    this.#network = network;
    this.from = from;
    this.to = to;
  }

  on(event: 'message' | 'close', listener: (bytes: Uint8Array) => void): void {
    if (event === 'message') this.#onMessage.push(listener);
    else this.#onClose.push(listener as () => void);
  }

  postMessage(bytes: Uint8Array): void {
    if (this.isClosed) return;
    // they are the receiver's from now on
    this.#network.carry(this, bytes);
  }

  close(): void {
    if (this.isClosed) return;
    this.isClosed = true;
    this.other?.breakLater(this.#network.weather.maxDelayMs);
  }

  arrive(bytes: Uint8Array): void {
    if (this.isClosed) return;
    for (const listener of this.#onMessage) listener(bytes);
  }

  /** This side notices, after a while, that the connection is broken. */
  breakLater(delayMs: number): void {
    if (this.#isBreaking || this.isClosed || this.from.isDead) return;
    this.#isBreaking = true;
    this.from.later(delayMs, `broken ${this.to.name}`, () => {
      if (this.isClosed) return;
      this.#network.counts.broken++;
      this.isClosed = true;
      for (const listener of this.#onClose) listener();
      this.other?.breakLater(this.#network.weather.maxDelayMs);
    });
  }
}

/** The transport of one process: what it serves, and its connections to others. */
class Node implements Transport {
  readonly #network: SimNetwork;
  readonly #process: SimProcess;
  /** Undefined: messages need none. */
  readonly #codec: CallCodec | undefined;
  /** All that an event has to say to a peer is one message. */
  readonly #clock: Clock;
  readonly #local: LocalTransport;
  /** The addresses that the process serves. */
  readonly #served = new Set<string>();
  readonly #budget: ByteBudget;
  readonly #metrics = new Metrics();
  readonly #peers = new Map<string, Promise<PortPeer>>();
  /** Those that are connected. */
  readonly #connected = new Map<string, PortPeer>();

  constructor(network: SimNetwork, process: SimProcess, codec: CallCodec | undefined, budgetBytes: number) {
    this.#network = network;
    this.#process = process;
    this.#codec = codec;
    this.#budget = new ByteBudget(budgetBytes);
    this.#clock = process.clockOfTurns();
    this.#local = new LocalTransport(process.clock);
  }

  async serve(address: string, handler: CallHandler): Promise<() => Promise<void>> {
    const stopListening = this.#network.listen(address, this.#process, this);
    const stop = await this.#local.serve(address, this.#network.noted(this.#process, handler));
    this.#served.add(address);
    return async () => {
      this.#served.delete(address);
      stopListening();
      await stop();
    };
  }

  async call(address: string, method: string, message: unknown, context: RequestContext): Promise<unknown> {
    if (this.#served.has(address)) return this.#local.call(address, method, message, context);
    const { clock } = this.#process;
    const pass = async (): Promise<void> => {
      const others = this.#network.overtaken(this.#process);
      if (others !== undefined) await within(others, context, clock);
    };
    await pass();
    const peer = await within(this.#peer(address), context, clock);
    const send = (sent: unknown): Promise<unknown> => peer.call(address, method, sent, context);
    const answer = await (this.#codec === undefined
      ? send(message)
      : encodedCall(this.#codec, clock, method, message, send));
    await pass();
    return answer;
  }

  stream(address: string, method: string, message: unknown, context: RequestContext): AsyncIterable<unknown> {
    if (this.#served.has(address)) return this.#local.stream(address, method, message, context);
    const open = (peer: PortPeer): AsyncIterable<unknown> => {
      const send = (sent: unknown): AsyncIterable<unknown> => peer.stream(address, method, sent, context);
      return this.#codec === undefined ? send(message) : encodedStream(this.#codec, method, message, send);
    };
    const peer = this.#connected.get(address);
    return peer === undefined ? this.#streamOnceConnected(address, context, open) : open(peer);
  }

  async *#streamOnceConnected(
    address: string,
    context: RequestContext,
    open: (peer: PortPeer) => AsyncIterable<unknown>,
  ): AsyncIterable<unknown> {
    yield* open(await within(this.#peer(address), context, this.#process.clock));
  }

  accept(port: Port): void {
    this.#open(port, () => {});
  }

  peerOver(port: Port, address: string): PortPeer {
    const peer = this.#open(port, () => {
      this.#peers.delete(address);
      if (this.#connected.get(address) === peer) this.#connected.delete(address);
    });
    this.#connected.set(address, peer);
    return peer;
  }

  #open(port: Port, onClosed: () => void): PortPeer {
    return new PortPeer({
      port: port as never,
      handlerOf: (address) => {
        const handler = this.#local.handlerOf(address);
        return this.#codec === undefined ? handler : encodedHandler(handler, this.#codec, this.#process.clock);
      },
      clock: this.#clock,
      budget: this.#budget,
      metrics: this.#metrics,
      onClosed,
    });
  }

  #peer(address: string): Promise<PortPeer> {
    let peer = this.#peers.get(address);
    if (peer === undefined) {
      peer = this.#network.connect(this.#process, address, this);
      this.#peers.set(address, peer);
      peer.catch(() => this.#peers.delete(address));
    }
    return peer;
  }
}

async function* heldAfter(
  parts: AsyncIterable<unknown>,
  afterPart: (part: unknown) => Promise<unknown> | undefined,
  goOn: () => Promise<void>,
): AsyncIterable<unknown> {
  const wait = async (held: Promise<unknown>): Promise<void> => {
    await held;
    await goOn();
  };
  for await (const part of parts) {
    const held = afterPart(part);
    yield part;
    if (held !== undefined) await wait(held);
  }
  const held = afterPart(undefined);
  if (held !== undefined) await wait(held);
}

async function* onceOver(late: Promise<void>, begin: () => AsyncIterable<unknown>): AsyncIterable<unknown> {
  await late;
  yield* begin();
}

function noServerAt(address: string): BigtableError {
  return notReached(`no server at address ${JSON.stringify(address)}`);
}
