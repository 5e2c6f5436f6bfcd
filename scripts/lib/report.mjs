/**
 * Results of the scripts that run programs of others: a line a result, sums, and the closing line.
 */
import { closingLine, secondsSince } from './repository.mjs';

export class Report {
  #tally = { passed: 0, failed: 0, skipped: 0 };
  /** @type {string[]} */
  #failures = [];
  #section = '';

  /**
   * Runs a section and prints its time; what it throws is one failure.
   *
   * @param {string} name
   * @param {() => Promise<unknown>} body
   */
  async section(name, body) {
    this.#section = name;
    const start = performance.now();
    console.log(`\n== ${name}`);
    try {
      await body();
    } catch (error) {
      this.fail('ended early', error.stack ?? String(error));
    }
    console.log(`== ${name}: ${secondsSince(start)}`);
  }

  /**
   * @param {string} name
   * @param {string} [text]
   */
  pass(name, text = '') {
    this.#tally.passed++;
    console.log(`PASS ${name}${text && `: ${text}`}`);
  }

  /**
   * Counts results that are not worth a line each.
   *
   * @param {number} count
   */
  passMany(count) {
    this.#tally.passed += count;
  }

  /**
   * @param {string} name
   * @param {string} [text]
   */
  fail(name, text = '') {
    this.#tally.failed++;
    this.#failures.push(`${this.#section}: ${name}`);
    console.log(`FAIL ${name}${text && `: ${text}`}`);
  }

  /**
   * @param {string} name
   * @param {string | undefined} why
   */
  skip(name, why) {
    this.#tally.skipped++;
    console.log(`SKIP ${name}: ${why}`);
  }

  /** @param {number} count */
  skipMany(count) {
    this.#tally.skipped += count;
  }

  /**
   * @param {boolean} ok
   * @param {string} name
   * @param {string} [text]
   */
  check(ok, name, text = '') {
    if (ok) this.pass(name, text);
    else this.fail(name, text);
  }

  /** Prints the failures again and the closing line; sets the exit status. Nothing run at all is a failure. */
  close() {
    if (this.#tally.passed + this.#tally.failed === 0) this.fail('nothing was run');
    if (this.#failures.length > 0)
      console.log(`\n${this.#failures.length} failures:\n${this.#failures.map((line) => `FAIL ${line}`).join('\n')}`);
    console.log(closingLine(this.#tally));
    process.exitCode = this.#tally.failed > 0 ? 1 : 0;
  }
}
