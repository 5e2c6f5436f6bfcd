/**
 * The form in which a client takes the rows of a read, as its headers say. It is one number, so that it travels with a
 * read that is passed on to another server.
 */
import type { RowFraming } from '../codec/chunk-writer.ts';
import type { RpcCall } from '../../wire/index.ts';
import { ClientQuirks } from './client-quirks.ts';
import { FeatureFlags } from './features.ts';

export interface ReadForm {
  readonly framing: RowFraming;
  readonly reverseScans: boolean;
  /** Reports from time to time how far a scan without output has come. */
  readonly reportsProgress: boolean;
}

const FRAMINGS: readonly RowFraming[] = ['parted', 'keyed', 'whole'];
const FRAMING_BITS = 0b11;
const REVERSE_SCANS = 0b100;
const REPORTS_PROGRESS = 0b1000;

/** One for each number. */
const FORMS: readonly ReadForm[] = Array.from({ length: 16 }, (_, form) => ({
  framing: FRAMINGS[form & FRAMING_BITS] ?? 'parted',
  reverseScans: (form & REVERSE_SCANS) !== 0,
  reportsProgress: (form & REPORTS_PROGRESS) !== 0,
}));

export function decodeForm(form: number): ReadForm {
  return FORMS[form % FORMS.length]!;
}

/** The forms of calls, by their headers. One for each API. */
export class ReadForms {
  readonly #features = new FeatureFlags();
  readonly #quirks = new ClientQuirks();

  of(call: Pick<RpcCall, 'header'>): number {
    const { reverseScans, lastScannedRowResponses } = this.#features.of(call);
    return (
      FRAMINGS.indexOf(this.#quirks.rowFraming(call)) |
      (reverseScans ? REVERSE_SCANS : 0) |
      (lastScannedRowResponses ? REPORTS_PROGRESS : 0)
    );
  }
}
