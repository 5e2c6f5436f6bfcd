import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { labelled, ManualClock, Metrics, type MetricsReport } from '../env/index.ts';
import { systemClock } from '../platform/index.ts';
import { METRICS, PROCESS_METRICS } from './metric-table.ts';
import { MetricsPage } from './metrics-page.ts';

const DEFINITIONS = Object.values(METRICS).flat();

/** A value under every name of the table, with labels that need escapes where there are labels. */
function everything(): Metrics {
  const metrics = new Metrics();
  for (const { type, labels = [], series } of DEFINITIONS) {
    for (const { source } of series) {
      const name = labelled(source, ...labels.map((label) => `${label} "x" \\ \n`));
      if (type === 'histogram') metrics.histogram(name).observe(3);
      else if (type === 'counter') metrics.add(name, 2);
      else metrics.gauge(name, () => 7);
    }
  }
  return metrics;
}

interface Family {
  readonly help: string;
  readonly type: string;
  readonly samples: {
    readonly name: string;
    readonly labels: Readonly<Record<string, string>>;
    readonly value: number;
  }[];
}

/** A parser of the text format that shares no code with the page. */
function parse(text: string): Map<string, Family> {
  const families = new Map<string, Family>();
  let family: Family | undefined;
  let of = '';
  let help: RegExpExecArray | null = null;
  for (const line of text.split('\n')) {
    if (line === '') continue;
    const type = /^# TYPE ([a-z_][a-z0-9_]*) (counter|gauge|histogram)$/.exec(line);
    if (line.startsWith('# HELP')) {
      help = /^# HELP ([a-z_][a-z0-9_]*) (.+)$/.exec(line);
      assert.ok(help, line);
    } else if (type) {
      of = type[1] as string;
      assert.equal(help?.[1], of, 'HELP stands before TYPE');
      assert.ok(!families.has(of), `${of} appears once`);
      family = { help: help?.[2] as string, type: type[2] as string, samples: [] };
      families.set(of, family);
    } else {
      const [, name = '', labels = '', value = ''] =
        /^([a-z_][a-z0-9_]*)(?:\{(.*)\})? (\S+)$/.exec(line) ?? assert.fail(line);
      assert.ok(
        family?.type === 'histogram' ? [`${of}_bucket`, `${of}_sum`, `${of}_count`].includes(name) : name === of,
        `${name} belongs to ${of}`,
      );
      const pairs = [...labels.matchAll(/([a-z_]+)="((?:[^"\\]|\\["\\n])*)"(?:,|$)/g)];
      assert.equal(pairs.map(([pair]) => pair).join(''), labels, line);
      assert.ok(Number.isFinite(Number(value)), line);
      family?.samples.push({
        name,
        labels: Object.fromEntries(pairs.map(([, label, of]) => [label, of])),
        value: Number(value),
      });
    }
  }
  return families;
}

const pageOf = (metrics: Metrics): MetricsPage => new MetricsPage({ main: () => metrics.report() }, systemClock);

test('the page keeps the conventions of Prometheus: names, units, HELP and TYPE, buckets', async () => {
  const families = parse(await pageOf(everything()).text());
  for (const [name, { type, help, samples }] of families) {
    assert.match(help, /^[A-Z1].*$/, name);
    assert.equal(name.endsWith('_total'), type === 'counter', name);
    assert.doesNotMatch(
      name,
      /_(ms|millis|milliseconds|micros|minutes|hours|kb|mb|kib|mib|percent|count|sum|bucket)(_|$)/,
      name,
    );
    assert.doesNotMatch(name, /__|(duration|delay|lag|latency|age)(_total)?$/, `${name} names its unit`);
    // no garbage collection may have happened yet
    if (name.startsWith('edubba_')) assert.ok(samples.length > 0, name);
    assert.equal(
      new Set(samples.map((sample) => JSON.stringify([sample.name, sample.labels]))).size,
      samples.length,
      `${name}: a sample twice`,
    );
    if (type !== 'histogram') continue;
    assert.match(name, /_seconds$/);
    const buckets = samples.filter((sample) => sample.name === `${name}_bucket`);
    const bounds = buckets.map(({ labels }) =>
      labels['le'] === '+Inf' ? Number.POSITIVE_INFINITY : Number(labels['le']),
    );
    if (name.startsWith('edubba_'))
      assert.deepEqual(
        bounds,
        [...bounds].sort((a, b) => a - b),
      );
  }
  for (const { name, type, help } of DEFINITIONS) {
    const family = families.get(name);
    assert.deepEqual([family?.type, family?.help], [type, help], name);
    assert.match(name, /^edubba_/);
  }
});

test('durations are in seconds, and counts of buckets add up to the last one', async () => {
  const metrics = new Metrics();
  for (const ms of [0.1, 0.2, 70_000]) metrics.histogram(labelled('calls.durationMs', 'A')).observe(ms);
  const { samples } = parse(await pageOf(metrics).text()).get('edubba_call_duration_seconds') as Family;
  const at = (le: string): number | undefined => samples.find(({ labels }) => labels['le'] === le)?.value;
  assert.deepEqual([at('0.0001'), at('0.00025'), at('60'), at('+Inf')], [1, 2, 2, 3]);
  assert.equal(samples.find(({ name }) => name.endsWith('_count'))?.value, 3);
  assert.ok(Math.abs((samples.find(({ name }) => name.endsWith('_sum'))?.value ?? 0) - 70.0003) < 1e-9);
});

test('a count without events is 0, so that rates begin with the first event', async () => {
  const families = parse(await pageOf(new Metrics()).text());
  assert.deepEqual(families.get('edubba_connections_refused_total')?.samples, [
    { name: 'edubba_connections_refused_total', labels: {}, value: 0 },
  ]);
  assert.deepEqual(
    families.get('edubba_compactions_total')?.samples.map(({ labels, value }) => [labels['kind'], value]),
    [
      ['minor', 0],
      ['merging', 0],
      ['major', 0],
    ],
  );
});

test('values of labels are escaped', async () => {
  const metrics = new Metrics();
  metrics.add(labelled('calls.ended', 'a"b\\c\nd', 'OK'));
  assert.match(await pageOf(metrics).text(), /^edubba_calls_total\{method="a\\"b\\\\c\\nd",code="OK"\} 1$/m);
});

test('a page is made once a second at most, and never twice concurrently; a source that fails counts with its last report', async () => {
  const clock = new ManualClock();
  let asked = 0;
  let fails = false;
  let answer: ((report: MetricsReport) => void) | undefined;
  const page = new MetricsPage(
    {
      good: () => ({ counters: { 'sstable.reads': ++asked }, gauges: {}, histograms: {} }),
      slow: () =>
        new Promise<MetricsReport>((resolve, reject) => (fails ? reject(new Error('gone')) : (answer = resolve))),
    },
    clock,
  );
  await page.load();
  const reads = async (text: Promise<string>): Promise<string | undefined> =>
    /^edubba_file_reads_total (\d+)$/m.exec(await text)?.[1];
  const [first, second] = [page.text(), page.text()];
  while (answer === undefined) await systemClock.yield();
  answer({ counters: { 'sstable.reads': 100 }, gauges: {}, histograms: {} });
  assert.deepEqual([await reads(first), await reads(second), asked], ['101', '101', 1]);
  clock.advance(999);
  assert.equal(await reads(page.text()), '101');
  clock.advance(1);
  fails = true;
  assert.equal(await reads(page.text()), '102', 'a source that failed');
  clock.advance(1000);
  fails = false;
  answer = undefined;
  const late = page.text();
  while (answer === undefined) await systemClock.yield();
  clock.advance(2000);
  assert.equal(await reads(late), '103', 'a source that does not answer');
});

function rootOf(directory: string): string {
  return existsSync(join(directory, 'package.json')) ? directory : rootOf(dirname(directory));
}

test('all that src counts is in the table, and all that the table lists is counted', () => {
  const src = join(rootOf(dirname(fileURLToPath(import.meta.url))), 'src');
  const [named, counted] = [new Set<string>(), new Set<string>()];
  const add = (names: Set<string>, text: string, pattern: RegExp): void => {
    for (const [, name] of text.matchAll(pattern)) names.add(name as string);
  };
  for (const name of readdirSync(src, { recursive: true, encoding: 'utf8' })) {
    if (!name.endsWith('.ts') || /(\.test|fixtures)\.ts$|^monitor.metric|generated/.test(name)) continue;
    const text = readFileSync(join(src, name), 'utf8');
    add(named, text, /'([a-z][a-zA-Z]*\.[a-zA-Z]+)'/g);
    add(counted, text, /(?:metrics\.(?:add|counter|histogram|gauge)|labelled|counter)\('([a-z][a-zA-Z]*\.[a-zA-Z]+)'/g);
    add(counted, text, /'([a-z][a-zA-Z]*\.[a-zA-Z]+)': (?:\(\) =>|Number|disk)/g);
  }
  // made with the names of the budget's parts
  const listed = new Set(
    DEFINITIONS.flatMap(({ series }) => series.map(({ source }) => source)).filter(
      (source) => !source.startsWith('requests.usedBytes.'),
    ),
  );
  assert.ok(counted.size > 50, 'they are found');
  for (const source of listed) assert.ok(named.has(source), `${source} is in the table, and is not counted`);
  for (const source of counted) assert.ok(listed.has(source), `${source} is counted, and not in the table`);
});

test('the table of the metrics of prom-client is that of its output', async () => {
  const families = [...parse(await pageOf(new Metrics()).text())].filter(([name]) => !name.startsWith('edubba_'));
  const linuxOnly = (name: string): boolean => /^process_(virtual|heap|open|max)/.test(name);
  const wanted = PROCESS_METRICS.filter(({ name }) => process.platform === 'linux' || !linuxOnly(name));
  assert.deepEqual(
    families.map(([name, { type }]) => `${name} ${type}`).sort(),
    wanted.map(({ name, type }) => `${name} ${type}`).sort(),
  );
});
