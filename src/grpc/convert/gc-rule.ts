/**
 * google.bigtable.admin.v2.GcRule to the model's GC rule and back. A rule with nothing set is "never collect":
 * undefined.
 */
import { create, toBinary } from '@bufbuild/protobuf';
import type { Duration } from '@bufbuild/protobuf/wkt';
import { invalidArgument } from '../../base/index.ts';
import { type GcRule, LIMITS } from '../../model/index.ts';
import { type GcRule as GcRuleMessage, GcRuleSchema } from '../generated/google/bigtable/admin/v2/table_pb.ts';

/** Longer ages, of more than 285 years, have no full precision as a number of microseconds. */
const MAX_AGE_MICROS = Number.MAX_SAFE_INTEGER;

export function gcRuleOf(message: GcRuleMessage | undefined): GcRule | undefined {
  if (message === undefined || (message.rule.case === undefined && message.$unknown === undefined)) return undefined;
  const size = toBinary(GcRuleSchema, message).length;
  const maxBytes = LIMITS.default.gcRuleBytes;
  if (size > maxBytes)
    throw invalidArgument(`the GC rule has ${size} bytes serialized; the limit is ${maxBytes}`, { field: 'gc_rule' });
  return ruleOf(message);
}

function ruleOf(message: GcRuleMessage): GcRule {
  const { rule } = message;
  switch (rule.case) {
    case 'maxNumVersions':
      return { kind: 'maxVersions', versions: rule.value };
    case 'maxAge':
      return { kind: 'maxAge', ageMicros: microsOf(rule.value) };
    case 'union':
    case 'intersection':
      return { kind: rule.case, rules: rule.value.rules.map(ruleOf) };
    default:
      throw invalidArgument('a nested GcRule must be one of max_num_versions, max_age, union, intersection', {
        field: 'gc_rule',
      });
  }
}

/** Cut to microseconds, as the API says. */
function microsOf(age: Duration): number {
  const micros = age.seconds * 1_000_000n + BigInt(Math.trunc(age.nanos / 1000));
  if (micros > MAX_AGE_MICROS || micros < -MAX_AGE_MICROS)
    throw invalidArgument(`max_age of ${age.seconds} seconds is above 285 years`, { field: 'gc_rule.max_age' });
  return Number(micros);
}

export function gcRuleMessage(rule: GcRule): GcRuleMessage {
  switch (rule.kind) {
    case 'maxVersions':
      return create(GcRuleSchema, { rule: { case: 'maxNumVersions', value: rule.versions } });
    case 'maxAge':
      return create(GcRuleSchema, { rule: { case: 'maxAge', value: durationOf(rule.ageMicros) } });
    case 'union':
    case 'intersection':
      return create(GcRuleSchema, { rule: { case: rule.kind, value: { rules: rule.rules.map(gcRuleMessage) } } });
  }
}

function durationOf(micros: number): { seconds: bigint; nanos: number } {
  const seconds = Math.trunc(micros / 1_000_000);
  return { seconds: BigInt(seconds), nanos: (micros - seconds * 1_000_000) * 1000 };
}
