/** A port that passes connections on to another one, and fails in the ways in which networks do. */
import { connect, createServer, type Server, type Socket } from 'node:net';
import { closedAtEnd } from './opened.ts';

export class TcpProxy {
  /** Answers that were lost so far. */
  lostAnswers = 0;
  readonly #server: Server;
  readonly #pairs = new Set<readonly [client: Socket, server: Socket]>();
  #isRefusing = false;
  #isSilent = false;
  /** Chunks of the server until its next answer is lost; undefined: none is. */
  #untilLoss: number | undefined;

  private constructor(targetPort: number) {
    this.#server = createServer((client) => {
      if (this.#isRefusing) return void client.destroy();
      const server = connect({ host: '127.0.0.1', port: targetPort, noDelay: true });
      client.setNoDelay(true);
      const pair = [client, server] as const;
      this.#pairs.add(pair);
      client.on('data', (chunk) => void (this.#isSilent || server.write(chunk)));
      server.on('data', (chunk) => {
        if (this.#isSilent) return;
        if (this.#untilLoss !== undefined && this.#untilLoss-- <= 0) {
          this.#untilLoss = undefined;
          this.lostAnswers++;
          return this.#break(pair);
        }
        client.write(chunk);
      });
      for (const socket of pair) {
        socket.on('error', () => {});
        socket.on('close', () => this.#break(pair));
      }
    });
  }

  static async to(targetPort: number): Promise<TcpProxy> {
    const proxy = closedAtEnd(new TcpProxy(targetPort));
    await new Promise<void>((resolve) => proxy.#server.listen(0, '127.0.0.1', resolve));
    return proxy;
  }

  /** Connections that are open. */
  get connections(): number {
    return this.#pairs.size;
  }

  get endpoint(): string {
    return `127.0.0.1:${(this.#server.address() as { port: number }).port}`;
  }

  /** After that many chunks of the server one is lost, and its connection with it. Later ones pass. */
  loseAnswer(afterChunks: number): void {
    this.#untilLoss = afterChunks;
  }

  /** Breaks all connections, and takes none until `pass`. */
  refuse(): void {
    this.#isRefusing = true;
    for (const pair of this.#pairs) this.#break(pair);
  }

  /** Passes nothing on until `pass`, and closes nothing. What came meanwhile is lost. */
  goSilent(): void {
    this.#isSilent = true;
  }

  /** Ends what was begun. Connections that were silent are broken. */
  pass(): void {
    if (this.#isSilent) for (const pair of this.#pairs) this.#break(pair);
    this.#isRefusing = false;
    this.#isSilent = false;
  }

  close(): void {
    this.refuse();
    this.#server.close();
  }

  #break(pair: readonly [Socket, Socket]): void {
    this.#pairs.delete(pair);
    for (const socket of pair) socket.destroy();
  }
}
