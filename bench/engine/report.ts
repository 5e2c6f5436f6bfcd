/**
 * The tables of the engine bench: rates, CPU an operation, ratios to each peer, and whether each target is met.
 */
import type { Outcome, Shape, SystemName } from './job.ts';
import { LINES } from './lines.ts';

export interface Result extends Outcome {
  readonly line: string;
  readonly shape: Shape;
  readonly system: SystemName;
}

interface Target {
  readonly peer: SystemName;
  readonly least: number;
}

const AS_GOOD_AS_LEVEL: Target = { peer: 'classic-level', least: 1 };
const AS_GOOD_AS_ROCKS: Target = { peer: 'rocksdb-native', least: 1 };

/**
 * Targets of Edubba's rate, as multiples of the peer's. Of those against rocksdb-native most must be met, of the
 * others all. Synced writes have none against rocksdb-native, which does not sync.
 */
export function targetsOf(line: string): readonly Target[] {
  const scanned: readonly Target[] = [{ peer: 'classic-level', least: 1.5 }, AS_GOOD_AS_ROCKS];
  if (line === 'scan') return scanned;
  if (line === 'scan-reverse') return [...scanned, { peer: 'lmdb', least: 1 }];
  if (line === 'random-read-32') return [AS_GOOD_AS_LEVEL, AS_GOOD_AS_ROCKS, { peer: 'lmdb', least: 0.6 }];
  if (line === 'seq-write' || line === 'random-write') return [AS_GOOD_AS_LEVEL];
  if (line.includes('write')) return [AS_GOOD_AS_LEVEL, { peer: 'rocksdb-native', least: 0.7 }];
  return [AS_GOOD_AS_LEVEL, AS_GOOD_AS_ROCKS];
}

const MIB = 1024 * 1024;
const rate = ({ operations, seconds }: Outcome): number => operations / seconds;
const round = (value: number, digits: number): number => Number(value.toFixed(digits));

export function printResults(results: readonly Result[]): void {
  for (const { line, shape } of distinct(results)) {
    const here = results.filter((result) => result.line === line && result.shape === shape);
    const edubba = here.find(({ system }) => system === 'edubba');
    console.log(
      `\n${line} (${shape === 'value' ? 'one cell of 1000 bytes a row' : '20 cells of 50 bytes a row'}): ${LINES[line]?.what ?? ''}`,
    );
    console.table(
      Object.fromEntries(
        here.map((result) => [
          result.system,
          {
            'rows/s': Math.round(rate(result)),
            'CPU us/row': round(result.cpuMicrosPerOperation, 1),
            'edubba by rate': edubba ? round(rate(edubba) / rate(result), 2) : '-',
            'edubba by CPU': edubba ? round(result.cpuMicrosPerOperation / edubba.cpuMicrosPerOperation, 2) : '-',
            'written/user byte': round(result.writtenPerUserByte, 2),
            'resident MiB': Math.round(result.residentBytes / MIB),
            'disk MiB': Math.round(result.diskBytes / MIB),
            'open ms': Math.round(result.openMs),
          },
        ]),
      ),
    );
  }
}

function distinct(results: readonly Result[]): { line: string; shape: Shape }[] {
  return [...new Map(results.map(({ line, shape }) => [`${line} ${shape}`, { line, shape }])).values()];
}

/** One line a target: the ratio by rate, which counts, and by CPU, which a loaded machine does not blur. */
export function printTargets(results: readonly Result[]): void {
  const lines: Record<string, string | number>[] = [];
  for (const { line, shape } of distinct(results)) {
    const of = (name: SystemName): Result | undefined =>
      results.find((result) => result.line === line && result.shape === shape && result.system === name);
    const edubba = of('edubba');
    for (const { peer, least } of targetsOf(line)) {
      const other = of(peer);
      if (!edubba || !other) continue;
      const [byRate, byCpu] = [rate(edubba) / rate(other), other.cpuMicrosPerOperation / edubba.cpuMicrosPerOperation];
      lines.push({
        line,
        shape,
        target: `${least} x ${peer}`,
        'by rate': round(byRate, 2),
        met: byRate >= least ? 'yes' : 'NO',
        'by CPU': round(byCpu, 2),
        'met by CPU': byCpu >= least ? 'yes' : 'NO',
      });
    }
  }
  if (lines.length === 0) return;
  console.log('\ntargets');
  console.table(lines);
}
