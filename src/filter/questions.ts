/**
 * The answers of a run's expressions for the present input: a row key, a family, a qualifier or a value. Each
 * expression is evaluated once for an input, however many stages and copies of a cell ask. For an input that takes
 * long, all questions are answered beforehand, in slices (Questions); the stages then find the answers.
 *
 * Invariant: before `of` is called with an input that is not easy, the questions were begun and completed for that
 * input.
 */
import { type ByteString, toBytes } from '../base/index.ts';
import type { Allowance, Matcher, Matching } from './matcher.ts';

/** Inputs for which all questions together cost at most this many units are answered by the stages. */
const EASY_UNITS = 8192;

export abstract class Question<Input> {
  readonly matcher: Matcher;
  #input: Input | undefined;
  #answer = false;

  constructor(matcher: Matcher) {
    this.matcher = matcher;
  }

  of(input: Input): boolean {
    if (input === this.#input) return this.#answer;
    this.#answer = this.ask(input);
    this.#input = input;
    return this.#answer;
  }

  /** Begins to answer in slices. Undefined if the answer is known or cheap. */
  begin(input: Input): Matching | undefined {
    return input === this.#input || this.matcher.unitsPerByte === 0
      ? undefined
      : this.matcher.begin(this.bytesOf(input));
  }

  settle(input: Input, answer: boolean): void {
    this.#input = input;
    this.#answer = answer;
  }

  protected abstract ask(input: Input): boolean;
  protected abstract bytesOf(input: Input): Uint8Array;
}

export class TextQuestion extends Question<ByteString> {
  protected ask(text: ByteString): boolean {
    return this.matcher.matches(text);
  }

  protected bytesOf(text: ByteString): Uint8Array {
    return toBytes(text);
  }
}

export class ValueQuestion extends Question<Uint8Array> {
  #ofNone: boolean | undefined;

  /** Stripped copies come between others: the empty value has an answer of its own. */
  override of(value: Uint8Array): boolean {
    return value.length === 0 ? (this.#ofNone ??= this.ask(value)) : super.of(value);
  }

  protected ask(value: Uint8Array): boolean {
    return this.matcher.matchesBytes(value);
  }

  protected bytesOf(value: Uint8Array): Uint8Array {
    return value;
  }
}

/** All questions about one kind of input. */
export class Questions<Input extends { readonly length: number }> {
  /** Inputs up to this length are easy. */
  easyBytes = Number.POSITIVE_INFINITY;
  readonly #make: (matcher: Matcher) => Question<Input>;
  readonly #list: Question<Input>[] = [];
  #knownByMatcher: Map<Matcher, Question<Input>> | undefined;
  #unitsPerByte = 0;
  #input: Input | undefined;
  /** The question that is being answered, or is next. */
  #next = 0;
  #matching: Matching | undefined;

  constructor(make: (matcher: Matcher) => Question<Input>) {
    this.#make = make;
  }

  /** The question that `matcher` answers. */
  about(matcher: Matcher): Question<Input> {
    const known = this.#known().get(matcher);
    if (known !== undefined) return known;
    const question = this.#make(matcher);
    this.#known().set(matcher, question);
    this.#list.push(question);
    this.#unitsPerByte += matcher.unitsPerByte;
    if (this.#unitsPerByte > 0) this.easyBytes = Math.floor(EASY_UNITS / this.#unitsPerByte);
    return question;
  }

  #known(): Map<Matcher, Question<Input>> {
    this.#knownByMatcher ??= new Map();
    return this.#knownByMatcher;
  }

  /** Begins all questions for an input that is not easy. */
  begin(input: Input): void {
    this.#input = input;
    this.#next = 0;
    this.#matching = undefined;
  }

  /** Continues. True when all are answered, false when the allowance is spent. */
  resume(allowance: Allowance): boolean {
    const input = this.#input;
    if (input === undefined) return true;
    for (let question = this.#list[this.#next]; question !== undefined; question = this.#list[++this.#next]) {
      this.#matching ??= question.begin(input);
      if (this.#matching !== undefined) {
        const answer = this.#matching.resume(allowance);
        if (answer === undefined) return false;
        question.settle(input, answer);
        this.#matching = undefined;
      }
      allowance.units--;
    }
    this.#input = undefined;
    return true;
  }
}
