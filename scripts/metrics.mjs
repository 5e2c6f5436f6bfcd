/**
 * docs/METRICS.md from the table of metrics, src/monitor/metric-table.ts. Without an argument it compares, and ends
 * with status 1 where the page is not what the table says.
 *
 *   node --import tsx scripts/metrics.mjs [--write]
 */
import { metricsDocument } from '../src/monitor/index.ts';
import { keepPage } from './lib/generated-page.mjs';

keepPage({
  page: 'docs/METRICS.md',
  text: metricsDocument(),
  source: 'src/monitor/metric-table.ts',
  script: 'scripts/metrics.mjs',
});
