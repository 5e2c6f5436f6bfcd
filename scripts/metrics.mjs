/**
 * docs/METRICS.md from the table of metrics, src/monitor/metric-table.ts. Without an argument it compares, and ends with status 1 where the page is not what the
 * table says.
 *
 *   node --import tsx scripts/metrics.mjs [--write]
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { metricsDocument } from '../src/monitor/index.ts';
import { ROOT } from './lib/repository.mjs';

const path = join(ROOT, 'docs/METRICS.md');
if (process.argv.includes('--write')) {
  writeFileSync(path, metricsDocument());
} else if (readFileSync(path, 'utf8') !== metricsDocument()) {
  console.error('docs/METRICS.md is not what src/monitor/metric-table.ts says: node --import tsx scripts/metrics.mjs --write');
  process.exitCode = 1;
}
