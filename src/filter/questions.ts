/**
 * What a run's expressions say of the input at hand: a row key, a family, a qualifier or a value. Each expression is
 * asked once of an input, however many stages and copies of a cell want to know. Inputs that are long for the
 * expressions are asked of beforehand, in parts (Questions); then the stages find the answers.
 *
 * Invariant: whoever asks `of` an input that is not easy has had the questions begun and gone to their end for that
 * input before.
 */
import { type ByteString, toBytes } from '../base/index.ts';
import type { Allowance, Matcher, Matching } from './matcher.ts';

/** An input for which all questions together cost no more is asked of inside the stages, in units. */
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

  /** In parts; undefined where the answer is known, or known at once. */
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

  /** Stripped copies stand between others: the empty value has an answer of its own. */
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
  /** The question that is asked now, or next. */
  #next = 0;
  #matching: Matching | undefined;

  constructor(make: (matcher: Matcher) => Question<Input>) {
    this.#make = make;
  }

  /** The question that this matcher answers. */
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

  /** Asks all of them of an input that is not easy. */
  begin(input: Input): void {
    this.#input = input;
    this.#next = 0;
    this.#matching = undefined;
  }

  /** True: all are answered. False: the allowance is spent. */
  goOn(allowance: Allowance): boolean {
    const input = this.#input;
    if (input === undefined) return true;
    for (let question = this.#list[this.#next]; question !== undefined; question = this.#list[++this.#next]) {
      this.#matching ??= question.begin(input);
      if (this.#matching !== undefined) {
        const answer = this.#matching.goOn(allowance);
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
