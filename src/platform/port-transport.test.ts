import { transportContract } from '../../test/contracts/transport-contract.ts';
import { ManualClock } from '../env/index.ts';
import { acrossPort, portPair } from './fixtures.ts';

/** Time stands still but where a test lets it pass; turns of the event loop are real ones, since messages of ports come in them. */
class PortClock extends ManualClock {
  override yield(): Promise<void> {
    return new Promise((resolve) => setImmediate(resolve));
  }
}

transportContract('ports', async () => {
  const clock = new PortClock();
  const { here, there, close } = portPair(clock);
  return { transport: acrossPort(here, there), nowMs: () => clock.monotonicMs(), pass: (ms) => clock.advance(ms), close: async () => close() };
});
