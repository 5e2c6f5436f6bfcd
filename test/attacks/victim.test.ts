/** The harness of the attacks, against a server without attackers. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Victim } from './victim.ts';

describe('a server without attackers', () => {
  for (const words of [[], ['--tablet-servers', '2']]) {
    test(`answers others, tells its memory, and stops with status 0 (${words.join(' ') || 'one tablet server'})`, async (t) => {
      const victim = await Victim.start(t, { words });
      await victim.answerOthers();
      const { rssBytes, peakRssBytes } = await victim.memory();
      assert.ok(rssBytes > 0 && rssBytes <= peakRssBytes);
      assert.equal(await victim.stop(), 0, victim.err);
    });
  }
});
