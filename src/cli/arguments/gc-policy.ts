/**
 * Garbage-collection policies as cbt writes them: `maxage=10d`, `maxversions=3`, joined by `and` or `or` with
 * parentheses, or `never`.
 *
 *   expression = term { ("or" | "||") term }      either drops a version: union
 *   term       = factor { ("and" | "&&") factor } both must: intersection
 *   factor     = "(" expression ")" | "maxage" "=" duration | "maxversions" "=" number | "never"
 */
import type { GcRule } from '../../model/index.ts';
import { UsageError } from '../output/usage-error.ts';

const UNIT_MICROS: Readonly<Record<string, number>> = { ms: 1e3, s: 1e6, m: 6e7, h: 3.6e9, d: 8.64e10 };

/** Undefined for `never`. */
export function parseGcPolicy(text: string): GcRule | undefined {
  const tokens =
    text
      .toLowerCase()
      .replace(/\s*=\s*/g, '=')
      .match(/[()]|&&|\|\||[a-z0-9.=]+|\S/g) ?? [];
  let at = 0;
  const fail = (what: string): never => {
    throw new UsageError(
      `GC policy "${text}": ${what} (write e.g. maxversions=3, maxage=10d, "maxage=1d or maxversions=3", never)`,
    );
  };
  const joined = (
    kind: 'union' | 'intersection',
    words: readonly string[],
    part: () => GcRule | undefined,
  ): GcRule | undefined => {
    const rules = [part()];
    while (words.includes(tokens[at] ?? '')) {
      at++;
      rules.push(part());
    }
    if (rules.length === 1) return rules[0];
    return { kind, rules: rules.map((rule) => rule ?? fail('never cannot be joined with other rules')) };
  };
  const expression = (): GcRule | undefined => joined('union', ['or', '||'], term);
  const term = (): GcRule | undefined => joined('intersection', ['and', '&&'], factor);
  const factor = (): GcRule | undefined => {
    const token = tokens[at++];
    if (token === undefined) return fail('it ends too early');
    if (token === '(') {
      const inner = expression();
      if (tokens[at++] !== ')') fail('a parenthesis is not closed');
      return inner;
    }
    if (token === 'never') return undefined;
    const versions = /^maxversions=(\d+)$/.exec(token);
    if (versions) return { kind: 'maxVersions', versions: Number(versions[1]) };
    const ageMicros = token.startsWith('maxage=') ? parseAge(token.slice('maxage='.length)) : undefined;
    if (ageMicros !== undefined) return { kind: 'maxAge', ageMicros };
    return fail(`"${token}" is not a rule`);
  };
  const rule = expression();
  if (at < tokens.length) fail(`"${tokens[at]}" does not belong there`);
  return rule;
}

/** An age such as 12h or 1.5d in microseconds; undefined for another text. */
export function parseAge(text: string): number | undefined {
  const [, number, unit] = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/.exec(text) ?? [];
  return number === undefined ? undefined : Math.round(Number(number) * UNIT_MICROS[unit!]!);
}

/** The rule as cbt shows it: versions() > 3, (age() > 1d || versions() > 3). */
export function formatGcRule(rule: GcRule | undefined): string {
  if (rule === undefined) return '<never>';
  switch (rule.kind) {
    case 'maxVersions':
      return `versions() > ${rule.versions}`;
    case 'maxAge':
      return `age() > ${formatDuration(rule.ageMicros)}`;
    case 'union':
      return `(${rule.rules.map(formatGcRule).join(' || ')})`;
    case 'intersection':
      return `(${rule.rules.map(formatGcRule).join(' && ')})`;
  }
}

function formatDuration(micros: number): string {
  for (const unit of ['d', 'h', 'm', 's', 'ms']) {
    const size = UNIT_MICROS[unit]!;
    if (micros >= size && micros % size === 0) return `${micros / size}${unit}`;
  }
  return `${micros / 1e6}s`;
}
