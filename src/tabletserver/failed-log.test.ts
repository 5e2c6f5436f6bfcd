/** A server whose log has failed, so that only a replay tells what is in it, is asked to release a tablet. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Cluster } from '../../test/cluster.ts';
import { allRows } from '../../test/metadata-rows.ts';
import { setCell, TABLES } from '../../test/tables.ts';
import { BigtableError, unavailable } from '../base/index.ts';
import { keyOfRow, type MetadataRow } from '../metadata/index.ts';
import { callServer, logPathOf } from '../protocol/index.ts';

test('a tablet is not released by a server whose log has failed: what is in the log is replayed', async () => {
  const cluster = new Cluster({ servers: 2 });
  const { fileSystem, env } = cluster;
  /** The append to this log is made, and its answer is lost once this is called. */
  let loseAnswer: (() => void) | undefined;
  let failing: string | undefined;
  const openLog = fileSystem.openLog.bind(fileSystem);
  fileSystem.openLog = async (path) => {
    const writer = await openLog(path);
    const append = writer.append.bind(writer);
    writer.append = async (...args) => {
      const position = await append(...args);
      if (path !== failing) return position;
      await new Promise<void>((resolve) => (loseAnswer = resolve));
      throw unavailable('the answer is lost');
    };
    return writer;
  };
  await cluster.inTime(async () => {
    await cluster.start();
    const { tables } = cluster;
    await tables.create('t');
    await tables.set('t', 'a', '1');
    const rowOf = async (): Promise<MetadataRow> => {
      const { users } = await allRows(env, tables.context());
      return users[0]!;
    };
    const row = await rowOf();
    const { name, address } = row.server!;
    failing = logPathOf(name);
    const written = cluster.client
      .mutateRow(tables.context(5000), `${TABLES}t`, { row: 'b', mutations: [setCell('1')] })
      .catch((thrown: unknown) => thrown);
    while (loseAnswer === undefined) await new Promise((resolve) => setImmediate(resolve));
    const tablets = [{ key: keyOfRow(row), epoch: row.epoch }];
    const unload = { tablets, flush: true };
    const released = callServer(env.transport, address, 'unload', unload, tables.context(5000)).catch(
      (thrown: unknown) => [thrown],
    );
    await new Promise((resolve) => setImmediate(resolve));
    loseAnswer();
    assert.ok((await written) instanceof BigtableError, 'the outcome of the write is unknown');
    const [outcome] = await released;
    assert.notEqual(outcome, undefined, 'the tablet is not released');
    failing = undefined;
    assert.deepEqual(await tables.rows('t'), ['a', 'b']);
    await cluster.close();
  });
});
