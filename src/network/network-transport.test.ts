import { transportContract } from '../../test/contracts/transport-contract.ts';
import { across, startProcess } from './fixtures.ts';

transportContract('network', async () => {
  const processes = await Promise.all(['server', 'first', 'second'].map((name) => startProcess(name)));
  const [server, first, second] = processes as [(typeof processes)[0], (typeof processes)[0], (typeof processes)[0]];
  return {
    transport: across(first, server),
    // all three run on one time
    nowMs: () => first.clock.monotonicMs(),
    pass: (ms) => {
      for (const { clock } of processes) clock.advance(ms);
    },
    // that of the wire's wheel of deadlines
    lateMs: 8,
    close: async () => {
      for (const process of processes) await process.close();
    },
    lossy: { second: across(second, server), breakConnections: () => server.proxy.breakConnections() },
  };
});
