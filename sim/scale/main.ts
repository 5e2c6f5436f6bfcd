/**
 * A run of a large cluster in simulated time, and its verdicts. Ends with status 1 if one of them does not hold.
 *
 *   npm run sim -- --scale [--seed N] [--servers 100] [--tablets 100000] [--deaths 60] [--death-ms 1000]
 */
import { runScale } from './run.ts';

const [seed = '1', servers = '100', tablets = '100000', deaths = '60', deathMs = '1000'] = process.argv.slice(2);
/** METADATA is split at 10,000 rows here. */
const ROWS_PER_METADATA_TABLET = 10_000;

const size = {
  servers: Number(servers),
  tablets: Number(tablets),
  metadataTablets: Math.max(3, Math.ceil(Number(tablets) / ROWS_PER_METADATA_TABLET)),
};
console.log(
  `${size.servers} servers, ${size.tablets} tablets, ${size.metadataTablets} tablets of METADATA, seed ${seed}`,
);
const onLine = (line: string): void => console.log(line);
const figures = await runScale({
  seed: Number(seed),
  size,
  deaths: Number(deaths),
  deathMs: Number(deathMs),
  onLine,
});
const { coldStartMs, recoveryMs, unseenRecoveryMs, lockCallsPerDeath, balanceMs, moves, leastMoves, trace } = figures;
const seconds = (ms: number): string => `${(ms / 1000).toFixed(1)} s`;
const verdicts: [what: string, holds: boolean][] = [
  [`cold start: ${seconds(coldStartMs)} of at most 60 s`, coldStartMs <= 60_000],
  [`all tablets of a dead server served after ${seconds(recoveryMs)} of at most 15 s`, recoveryMs <= 15_000],
  [`calls of the lock service for a dead server: ${lockCallsPerDeath} of at most 10`, lockCallsPerDeath <= 10],
  [`half as many servers again are balanced after ${seconds(balanceMs)} of at most 600 s`, balanceMs <= 600_000],
  [`moves: ${moves} of at most ${Math.floor(1.1 * leastMoves)}`, moves <= 1.1 * leastMoves],
];
console.log(`where deaths are detected after a lease of 10 s: ${seconds(unseenRecoveryMs)}, without a bound`);
for (const [what, holds] of verdicts) console.log(`${holds ? 'ok  ' : 'FAIL'} ${what}`);
const passed = verdicts.filter(([, holds]) => holds).length;
console.log(`trace ${trace}`);
console.log(`${passed} passed, ${verdicts.length - passed} failed, 0 skipped`);
if (passed < verdicts.length) process.exitCode = 1;
