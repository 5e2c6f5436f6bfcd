/**
 * Tokens of change streams: how far a reader has come with each part of a range. Format: docs/formats/stream-tokens.md.
 * A token tells nothing but places in logs, and gives no right: what is read from there is checked like any read.
 */
import { assert, invalidArgument, toBigtableError } from '../base/index.ts';
import { encodeDocument, PlainObject } from '../metadata/index.ts';
import {
  comparePositions,
  type ChangePosition,
  intersectRanges,
  isEmptyRange,
  type RowRange,
  type StreamProgress,
} from '../model/index.ts';
import type { StreamToken } from '../service/index.ts';

/** Longer ones are refused. */
const MAX_TOKEN_CHARACTERS = 1024 * 1024;

export function encodeToken(progress: readonly StreamProgress[]): string {
  assert(progress.length > 0, 'a token tells of a range');
  return encodeDocument({ progress: progress.map(fieldsOf) }).toString('base64url');
}

/** INVALID_ARGUMENT for what is no token, or not of that range. */
export function decodeToken({ range, token }: StreamToken): readonly StreamProgress[] {
  const progress = parse(token);
  if (!isWhole(progress, range)) throw invalidArgument('a continuation token is that of another partition');
  return progress;
}

/** The progress of several tokens. INVALID_ARGUMENT where their ranges are not together the range. */
export function decodeTokens(tokens: readonly StreamToken[], range: RowRange): readonly StreamProgress[] {
  const sorted = [...tokens].sort((a, b) => (a.range.start < b.range.start ? -1 : 1));
  if (!isWhole(sorted, range))
    throw invalidArgument('the partitions of the continuation tokens are not together the partition to be read');
  return joined(sorted.flatMap(decodeToken));
}

/** The progress of a reader that has read everything up to a place. */
export function advanced(progress: readonly StreamProgress[], place: ChangePosition): readonly StreamProgress[] {
  return joined(
    progress.map((one) =>
      one.after === undefined || comparePositions(one.after, place) < 0 ? { ...one, after: place } : one,
    ),
  );
}

/** The progress of the part of a range. */
export function progressOf(progress: readonly StreamProgress[], part: RowRange): readonly StreamProgress[] {
  return progress
    .map((one) => ({ ...one, range: intersectRanges(one.range, part) }))
    .filter(({ range }) => !isEmptyRange(range));
}

/** Neighbours at the same place become one. */
function joined(progress: readonly StreamProgress[]): readonly StreamProgress[] {
  const all: StreamProgress[] = [];
  for (const one of progress) {
    const last = all.at(-1);
    if (last !== undefined && last.fromMicros === one.fromMicros && isSamePlace(last.after, one.after))
      all[all.length - 1] = { ...last, range: { start: last.range.start, end: one.range.end } };
    else all.push(one);
  }
  return all;
}

function isSamePlace(a: ChangePosition | undefined, b: ChangePosition | undefined): boolean {
  if (a === undefined || b === undefined) return a === b;
  return comparePositions(a, b) === 0;
}

/** True where the parts, which are sorted, meet, and are the range. */
function isWhole(parts: readonly { readonly range: RowRange }[], range: RowRange): boolean {
  let end: string | undefined = range.start;
  for (const part of parts) {
    if (end === undefined || part.range.start !== end) return false;
    end = part.range.end;
  }
  return parts.length > 0 && end === range.end;
}

function fieldsOf({ range, fromMicros, after }: StreamProgress): Record<string, unknown> {
  return { ...range, fromMicros, after };
}

function parse(token: string): readonly StreamProgress[] {
  if (token.length > MAX_TOKEN_CHARACTERS) throw invalidArgument('a continuation token is too long');
  try {
    const object = PlainObject.parse('continuation token', Buffer.from(token, 'base64url'));
    return object.objects('progress').map((one) => ({
      range: { start: one.bytes('start'), end: one.has('end') ? one.bytes('end') : undefined },
      fromMicros: one.count('fromMicros'),
      after: one.has('after') ? placeOf(one.object('after')) : undefined,
    }));
  } catch (thrown) {
    throw invalidArgument(`a continuation token cannot be read: ${toBigtableError(thrown).message}`);
  }
}

function placeOf(object: PlainObject): ChangePosition {
  const server = object.text('server');
  if (!/^[0-9a-f]{32}$/.test(server)) throw object.wrong('server', '32 hexadecimal digits', server);
  return {
    server,
    epoch: object.count('epoch'),
    position: object.count('position'),
    record: object.count('record'),
    row: object.count('row'),
  };
}
