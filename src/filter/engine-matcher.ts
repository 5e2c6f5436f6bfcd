/**
 * Matches expressions that need the engine, in slices. re2js only matches whole inputs, so this drives its automaton
 * (DFA) and its simulation of threads (Machine) byte by byte; the work for a byte is the engine's own code. Values are
 * matched as bytes, without making text of them.
 *
 * The automaton is built as inputs need it, and kept. If it has filled its part of the memory, or the program is large,
 * the rest of the input is simulated: slower than built states, and much faster than building them.
 *
 * Invariant: one call overdraws its allowance by at most one byte's work.
 */
import type { RE2JS } from 're2js';
import { assert, BigtableError, type ByteString, Code, quote, toBytes } from '../base/index.ts';
import type { Allowance, Matcher, Matching } from './matcher.ts';

/** Memory for the lazily built automata of all engines of a filter. */
const MAX_AUTOMATA_BYTES = 16 * 1024 * 1024;
const MIN_AUTOMATON_BYTES = 64 * 1024;
/** Larger programs are only simulated: one of their states would take milliseconds to build. */
const MAX_AUTOMATON_INSTRUCTIONS = 2000;
/** Units for each thread of a state that is built. */
const BUILT_THREAD_UNITS = 64;
/** Bytes that pass through built states in a unit. */
const WALKED_BYTES = 4;
/** Most units of one question, a minute or so: the deadline ends most calls earlier. */
const MAX_MATCH_UNITS = 2 ** 32;

/** re2js's mark of a match from the beginning to the end of the input. */
const ANCHOR_BOTH = 2;
/** re2js's pseudo character after the last one. */
const END = -1;

/** The parts of re2js's classes that are used here. */
interface State {
  readonly nfaStates: readonly number[];
  readonly isMatch: boolean;
  readonly nextAnchored: readonly (State | null)[] | null;
}

interface Automaton {
  stateBudget: number;
  memBudget: number;
  readonly latin1Class: Int32Array;
  readonly numClasses: number;
  start(input: object, at: number): State | null;
  step(state: State, byteClass: number, byte: number, anchor: number): State | null;
}

interface Threads {
  readonly size: number;
  clear(): void;
}

interface Machine {
  readonly q0: Threads;
  readonly q1: Threads;
  readonly matchcap: Int32Array;
  matched: boolean;
  init(captures: number): void;
  add(threads: Threads, instruction: number, at: number, captures: Int32Array, offset: number, context: number): void;
  step(
    from: Threads,
    to: Threads,
    at: number,
    next: number,
    byte: number,
    context: number,
    anchor: number,
    atEnd: boolean,
  ): void;
}

interface Engine {
  readonly prog: { readonly start: number; numInst(): number };
  readonly dfa: Automaton;
  doExecuteNFA(input: object, at: number, anchor: number, captures: number): unknown;
  get(): Machine | null;
  put(machine: Machine): void;
}

/** An empty input, for which re2js evaluates the conditions of the beginning. */
const NO_INPUT = { context: () => -1, step: () => -8, endPos: () => 0, canCheckPrefix: () => false };

const NO_CLASSES = new Int32Array(0);

/**
 * Shared by the engines of a filter: the memory for automata, by the number of engines; and the units that they spent
 * outside any allowance.
 */
export interface EngineShare {
  engines: number;
  units: number;
}

export class EngineMatcher implements Matcher {
  readonly prefix: ByteString;
  readonly unitsPerByte: number;
  readonly #engine: Engine;
  readonly #share: EngineShare;
  readonly #pattern: ByteString;
  readonly #field: string;
  readonly #maxUnits: number;
  /** First state of the automaton, known after the first match; then the classes of bytes and of the end. */
  #start: State | null | undefined;
  #classes: Int32Array = NO_CLASSES;
  #endClass = 0;

  /** `maxUnits` is the limit of one question. */
  constructor(
    engine: RE2JS,
    prefix: ByteString,
    pattern: ByteString,
    field: string,
    share: EngineShare,
    maxUnits = MAX_MATCH_UNITS,
  ) {
    this.#engine = engine.re2() as unknown as Engine;
    this.prefix = prefix;
    this.#pattern = pattern;
    this.#field = field;
    this.#share = share;
    this.#maxUnits = maxUnits;
    this.unitsPerByte = 4 * this.#engine.prog.numInst();
  }

  /** Mostly all states of the input are built already: then nothing is allocated. */
  matches(text: ByteString): boolean {
    const classes = this.#classes;
    let state = this.#start;
    for (let at = 0; at < text.length && state; at++) {
      state = state.nextAnchored?.[classes[text.charCodeAt(at)]!];
      if (state?.nfaStates.length === 0) return false;
    }
    return (state ? this.#outcomeOf(state) : undefined) ?? this.#matchesWhole(toBytes(text));
  }

  /** Like `matches`, for bytes. */
  matchesBytes(bytes: Uint8Array): boolean {
    const classes = this.#classes;
    let state = this.#start;
    for (let at = 0; at < bytes.length && state; at++) {
      state = state.nextAnchored?.[classes[bytes[at]!]!];
      if (state?.nfaStates.length === 0) return false;
    }
    return (state ? this.#outcomeOf(state) : undefined) ?? this.#matchesWhole(bytes);
  }

  /** True if an input that ends in this state matches; undefined if that is not built. */
  #outcomeOf(state: State): boolean | undefined {
    return state.nextAnchored?.[this.#endClass]?.isMatch;
  }

  #matchesWhole(bytes: Uint8Array): boolean {
    const allowance = { units: this.#maxUnits };
    const found = this.begin(bytes).resume(allowance);
    this.#share.units += this.#maxUnits - allowance.units;
    if (found === undefined) throw this.#tooMuch(bytes.length);
    return found;
  }

  begin(bytes: Uint8Array): Matching {
    if (this.#start === undefined) this.#start = this.#startState();
    return new EngineMatching(this.#engine, this.#start, bytes, this.#maxUnits, () => this.#tooMuch(bytes.length));
  }

  /** Called before the first match, when all engines of the filter are known. Null: no automaton, all is simulated. */
  #startState(): State | null {
    if (this.#engine.prog.numInst() > MAX_AUTOMATON_INSTRUCTIONS) return null;
    const automaton = this.#engine.dfa;
    automaton.stateBudget = Math.min(
      automaton.stateBudget,
      Math.max(MIN_AUTOMATON_BYTES, Math.floor(MAX_AUTOMATA_BYTES / this.#share.engines)),
    );
    automaton.memBudget = automaton.stateBudget;
    this.#classes = automaton.latin1Class;
    this.#endClass = automaton.numClasses;
    return automaton.start(NO_INPUT, 0);
  }

  #tooMuch(length: number): BigtableError {
    const size = this.#engine.prog.numInst();
    return new BigtableError(
      Code.RESOURCE_EXHAUSTED,
      `${this.#field}: ${quote(this.#pattern, 200)} has ${size} instructions; an input of ${length} bytes takes it more than ${this.#maxUnits} steps, the limit for one match`,
    );
  }
}

class EngineMatching implements Matching {
  readonly #engine: Engine;
  readonly #bytes: Uint8Array;
  readonly #maxUnits: number;
  readonly #tooMuch: () => BigtableError;
  /** State of the automaton before the next byte; null: the input is simulated. */
  #state: State | null;
  #simulation: Simulation | undefined;
  #at = 0;
  #spent = 0;

  constructor(engine: Engine, start: State | null, bytes: Uint8Array, maxUnits: number, tooMuch: () => BigtableError) {
    this.#engine = engine;
    this.#state = start;
    this.#bytes = bytes;
    this.#maxUnits = maxUnits;
    this.#tooMuch = tooMuch;
  }

  resume(allowance: Allowance): boolean | undefined {
    const before = allowance.units;
    let found = this.#state === null ? undefined : this.#walk(this.#state, allowance);
    if (this.#state === null) found = this.#simulate(allowance);
    this.#spent += before - allowance.units;
    if (found === undefined && this.#spent > this.#maxUnits) throw this.#tooMuch();
    return found;
  }

  /** Sets `#state` to null if the automaton cannot continue. */
  #walk(from: State, allowance: Allowance): boolean | undefined {
    const automaton = this.#engine.dfa;
    const classes = automaton.latin1Class;
    const bytes = this.#bytes;
    let state = from;
    while (allowance.units > 0) {
      const begin = this.#at;
      const until = Math.min(bytes.length, begin + Math.ceil(allowance.units) * WALKED_BYTES);
      let at = begin;
      let next: State | null = state;
      for (; at < until; at++) {
        next = state.nextAnchored === null ? null : (state.nextAnchored[classes[bytes[at]!]!] ?? null);
        if (next === null) break;
        state = next;
        if (state.nfaStates.length === 0) return false;
      }
      this.#at = at;
      this.#state = state;
      allowance.units -= (at - begin) / WALKED_BYTES;
      if (at < bytes.length && next !== null) continue;
      const byte = at < bytes.length ? bytes[at]! : END;
      const byteClass = byte === END ? automaton.numClasses : classes[byte]!;
      const isBuilt = (state.nextAnchored?.[byteClass] ?? null) !== null;
      next = automaton.step(state, byteClass, byte, ANCHOR_BOTH);
      if (!isBuilt)
        allowance.units -= BUILT_THREAD_UNITS * (1 + state.nfaStates.length + (next?.nfaStates.length ?? 0));
      if (next === null) {
        this.#simulation = new Simulation(this.#engine, state, bytes, at);
        this.#state = null;
        return undefined;
      }
      if (byte === END) return next.isMatch;
      if (next.nfaStates.length === 0) return false;
      this.#at = at + 1;
      this.#state = state = next;
    }
    return undefined;
  }

  #simulate(allowance: Allowance): boolean | undefined {
    this.#simulation ??= new Simulation(this.#engine, undefined, this.#bytes, 0);
    return this.#simulation.resume(allowance);
  }
}

/** Simulates the rest of an input: tries all threads of the program on each byte. */
class Simulation implements Matching {
  readonly #engine: Engine;
  readonly #machine: Machine;
  readonly #bytes: Uint8Array;
  #at: number;
  #threads: Threads;
  #spare: Threads;

  /** `state` is that of the automaton before byte `at`; undefined at the beginning. */
  constructor(engine: Engine, state: State | undefined, bytes: Uint8Array, at: number) {
    this.#engine = engine;
    this.#bytes = bytes;
    this.#at = at;
    const machine = machineOf(engine);
    this.#machine = machine;
    this.#threads = machine.q0;
    this.#spare = machine.q1;
    const context = this.#contextAt(at);
    for (const instruction of state?.nfaStates ?? [engine.prog.start])
      machine.add(machine.q0, instruction, at, machine.matchcap, 0, context);
  }

  resume(allowance: Allowance): boolean | undefined {
    const bytes = this.#bytes;
    const machine = this.#machine;
    for (let at = this.#at; at < bytes.length; at++) {
      this.#at = at;
      if (this.#threads.size === 0) return this.#end(false);
      if (allowance.units <= 0) return undefined;
      const [from, to] = [this.#threads, this.#spare];
      const size = from.size;
      machine.step(from, to, at, at + 1, bytes[at]!, this.#contextAt(at + 1), ANCHOR_BOTH, false);
      allowance.units -= 1 + size + to.size;
      this.#threads = to;
      this.#spare = from;
    }
    this.#at = bytes.length;
    machine.matched = false;
    machine.step(this.#threads, this.#spare, bytes.length, bytes.length, END, 0, ANCHOR_BOTH, true);
    return this.#end(machine.matched);
  }

  /** The machine is reused for the next input. */
  #end(found: boolean): boolean {
    this.#machine.q0.clear();
    this.#machine.q1.clear();
    this.#engine.put(this.#machine);
    return found;
  }

  #contextAt(at: number): number {
    const bytes = this.#bytes;
    return contextBetween(at === 0 ? END : bytes[at - 1]!, at < bytes.length ? bytes[at]! : END);
  }
}

/** Returns a free machine. re2js itself makes machines only inside a match. */
function machineOf(engine: Engine): Machine {
  let machine = engine.get();
  if (machine === null) {
    engine.doExecuteNFA(NO_INPUT, 0, ANCHOR_BOTH, 0);
    machine = engine.get();
  }
  assert(machine !== null, 're2js keeps the machine of a match for the next one');
  machine.init(0);
  return machine;
}

/** The conditions that hold between two characters, as re2js numbers them: `^`, `$`, `\A`, `\z`, `\b`, `\B`. */
function contextBetween(before: number, after: number): number {
  let context = isWord(before) === isWord(after) ? 32 : 16;
  if (before === END) context |= 1 | 4;
  else if (before === NEWLINE) context |= 1;
  if (after === END) context |= 2 | 8;
  else if (after === NEWLINE) context |= 2;
  return context;
}

const NEWLINE = 10;

function isWord(byte: number): boolean {
  return (
    (byte >= 0x30 && byte <= 0x39) || (byte >= 0x41 && byte <= 0x5a) || byte === 0x5f || (byte >= 0x61 && byte <= 0x7a)
  );
}
