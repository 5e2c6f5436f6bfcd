/** For tests: two ends of a port, each with a transport, as two threads have them. */
import { MessageChannel } from 'node:worker_threads';
import { ByteBudget, type Clock, LocalTransport, Metrics, type Transport } from '../env/index.ts';
import { PortPeer } from './port-peer.ts';
import { PortTransport } from './port-transport.ts';

export interface PortEnd {
  readonly transport: PortTransport;
  readonly peer: PortPeer;
  readonly budget: ByteBudget;
}

export function portPair(clock: Clock): { here: PortEnd; there: PortEnd; close(): void } {
  const { port1, port2 } = new MessageChannel();
  const [here, there] = [port1, port2].map((port): PortEnd => {
    const transport = new PortTransport(new LocalTransport(clock));
    const budget = new ByteBudget(1 << 20);
    return { transport, budget, peer: new PortPeer({ port, clock, budget, metrics: new Metrics(), handlerOf: transport.handlerOf }) };
  }) as [PortEnd, PortEnd];
  return {
    here,
    there,
    close: () => {
      here.peer.close();
      there.peer.close();
    },
  };
}

/** One transport whose handlers are served behind the port. */
export function acrossPort(here: PortEnd, there: PortEnd): Transport {
  return {
    serve: async (address, handler) => {
      const stop = await there.transport.serve(address, handler);
      here.transport.route(address, here.peer);
      return stop;
    },
    call: (...args) => here.transport.call(...args),
    stream: (...args) => here.transport.stream(...args),
  };
}
