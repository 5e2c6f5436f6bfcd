/** The header grpc-timeout: up to eight digits and a unit. */
import { BigtableError, Code } from '../../base/index.ts';

const UNIT_MS: Readonly<Record<string, number>> = { H: 3_600_000, M: 60_000, S: 1000, m: 1, u: 1e-3, n: 1e-6 };
const MOST = 99_999_999;

/** Milliseconds. INTERNAL where the header is malformed. */
export function parseTimeout(header: string): number {
  const match = /^(\d{1,8})([HMSmun])$/.exec(header);
  if (!match) throw new BigtableError(Code.INTERNAL, `grpc-timeout ${JSON.stringify(header.slice(0, 32))} is none: one to eight digits and one of H, M, S, m, u, n`);
  return Number(match[1]) * (UNIT_MS[match[2] as string] as number);
}

/** The finest unit in which the value fits, never a shorter time. */
export function formatTimeout(ms: number): string {
  for (const unit of ['u', 'm', 'S', 'M'] as const) {
    const value = Math.max(0, Math.ceil(ms / (UNIT_MS[unit] as number)));
    if (value <= MOST) return `${value}${unit}`;
  }
  return `${Math.min(MOST, Math.ceil(ms / (UNIT_MS.H as number)))}H`;
}
