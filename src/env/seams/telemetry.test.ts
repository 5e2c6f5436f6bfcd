import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { Histogram, labelled, Metrics, sumOfReports } from './telemetry.ts';

test('a histogram counts each value at the first bound that is not below it', () => {
  const value = fc.double({ min: 0, max: 100, noNaN: true });
  fc.assert(
    fc.property(
      fc.array(value),
      fc.uniqueArray(fc.integer({ min: 0, max: 90 }), { minLength: 1 }),
      (values, numbers) => {
        const bounds = numbers.sort((a, b) => a - b);
        const histogram = new Histogram(bounds);
        for (const each of values) histogram.observe(each);
        const wanted = [...bounds, Number.POSITIVE_INFINITY].map(
          (bound, i) =>
            values.filter((each) => each <= bound && each > (bounds[i - 1] ?? Number.NEGATIVE_INFINITY)).length,
        );
        assert.deepEqual([...histogram.counts], wanted);
        assert.equal(
          histogram.sum,
          values.reduce((sum, each) => sum + each, 0),
        );
      },
    ),
  );
});

test('gauges of one name are added up, and end when they are stopped', () => {
  const metrics = new Metrics();
  const stop = metrics.gauge('a', () => 1);
  const stopBoth = metrics.gauges({ a: () => 2, b: () => 5 });
  assert.deepEqual(metrics.report().gauges, { a: 3, b: 5 });
  stop();
  assert.deepEqual(metrics.report().gauges, { a: 2, b: 5 });
  stopBoth();
  assert.deepEqual(metrics.report().gauges, {});
});

test('a report is plain data, and reports are added up name by name', () => {
  const [one, other] = [new Metrics(), new Metrics()];
  for (const [metrics, amount] of [
    [one, 1],
    [other, 2],
  ] as const) {
    metrics.add(labelled('calls', 'Read', 'OK'), amount);
    metrics.gauge('open', () => amount * 10);
    metrics.histogram('ms', [1, 10]).observe(amount);
  }
  other.add('other');
  const sum = sumOfReports([one.report(), other.report()].map((report) => structuredClone(report)));
  assert.deepEqual(sum, {
    counters: { 'calls|Read|OK': 3, other: 1 },
    gauges: { open: 30 },
    histograms: { ms: { bounds: [1, 10], counts: [1, 1, 0], sum: 3 } },
  });
});
