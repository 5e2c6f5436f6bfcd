/**
 * The questions of one run whose answers may take long, by their subject: rows, families, qualifiers or values. A
 * filter without such questions, as most are, allocates none.
 */
import type { ByteString } from '../base/index.ts';
import type { Cell } from '../model/index.ts';
import type { Allowance, Matcher } from './matcher.ts';
import { type Question, Questions, TextQuestion, ValueQuestion } from './questions.ts';

export const askText = (matcher: Matcher): Question<ByteString> => new TextQuestion(matcher);
export const askValue = (matcher: Matcher): Question<Uint8Array> => new ValueQuestion(matcher);

export class RunQuestions {
  #rows: Questions<ByteString> | undefined;
  #families: Questions<ByteString> | undefined;
  #qualifiers: Questions<ByteString> | undefined;
  #values: Questions<Uint8Array> | undefined;

  aboutRows(matcher: Matcher): Question<ByteString> {
    if (matcher.unitsPerByte === 0) return askText(matcher);
    this.#rows ??= new Questions(askText);
    return this.#rows.about(matcher);
  }

  aboutFamilies(matcher: Matcher): Question<ByteString> {
    if (matcher.unitsPerByte === 0) return askText(matcher);
    this.#families ??= new Questions(askText);
    return this.#families.about(matcher);
  }

  aboutQualifiers(matcher: Matcher): Question<ByteString> {
    if (matcher.unitsPerByte === 0) return askText(matcher);
    this.#qualifiers ??= new Questions(askText);
    return this.#qualifiers.about(matcher);
  }

  aboutValues(matcher: Matcher): Question<Uint8Array> {
    if (matcher.unitsPerByte === 0) return askValue(matcher);
    this.#values ??= new Questions(askValue);
    return this.#values.about(matcher);
  }

  get easyRowBytes(): number {
    return this.#rows?.easyBytes ?? Number.POSITIVE_INFINITY;
  }

  get easyFamilyBytes(): number {
    return this.#families?.easyBytes ?? Number.POSITIVE_INFINITY;
  }

  get easyQualifierBytes(): number {
    return this.#qualifiers?.easyBytes ?? Number.POSITIVE_INFINITY;
  }

  get easyValueBytes(): number {
    return this.#values?.easyBytes ?? Number.POSITIVE_INFINITY;
  }

  beginRow(row: ByteString): void {
    this.#rows?.begin(row);
  }

  begin({ family, qualifier, value }: Cell): void {
    if (family.length > this.easyFamilyBytes) this.#families?.begin(family);
    if (qualifier.length > this.easyQualifierBytes) this.#qualifiers?.begin(qualifier);
    if (value.length > this.easyValueBytes) this.#values?.begin(value);
  }

  /** Continues with the questions that were begun. True when all are answered. */
  resume(allowance: Allowance): boolean {
    return (
      isAnswered(this.#rows, allowance) &&
      isAnswered(this.#families, allowance) &&
      isAnswered(this.#qualifiers, allowance) &&
      isAnswered(this.#values, allowance)
    );
  }
}

function isAnswered(questions: Pick<Questions<ByteString>, 'resume'> | undefined, allowance: Allowance): boolean {
  return questions === undefined || questions.resume(allowance);
}
