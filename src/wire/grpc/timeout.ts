/** The header grpc-timeout: up to eight digits and a unit. */
import { BigtableError, Code } from '../../base/index.ts';

const UNIT_MS: Readonly<Record<string, number>> = { H: 3_600_000, M: 60_000, S: 1000, m: 1, u: 1e-3, n: 1e-6 };
const MAX_VALUE = 99_999_999;

const MAX_DIGITS = 8;

/**
 * Milliseconds. INTERNAL where the header is malformed. Hot path: nearly every call has one, so it is read by hand,
 * which is faster than a regular expression.
 */
export function parseTimeout(header: string): number {
  const digits = header.length - 1;
  const unitMs = digits >= 1 && digits <= MAX_DIGITS ? UNIT_MS[header.charAt(digits)] : undefined;
  if (unitMs === undefined) throw malformed(header);
  let value = 0;
  for (let i = 0; i < digits; i++) {
    const digit = header.charCodeAt(i) - 0x30;
    if (digit < 0 || digit > 9) throw malformed(header);
    value = value * 10 + digit;
  }
  return value * unitMs;
}

function malformed(header: string): BigtableError {
  return new BigtableError(
    Code.INTERNAL,
    `invalid grpc-timeout ${JSON.stringify(header.slice(0, 32))}: expected one to eight digits and one of H, M, S, m, u, n`,
  );
}

/** The finest unit in which the value fits, never a shorter time. */
export function formatTimeout(ms: number): string {
  for (const unit of ['u', 'm', 'S', 'M'] as const) {
    const value = Math.max(0, Math.ceil(ms / UNIT_MS[unit]!));
    if (value <= MAX_VALUE) return `${value}${unit}`;
  }
  return `${Math.min(MAX_VALUE, Math.ceil(ms / UNIT_MS.H!))}H`;
}
