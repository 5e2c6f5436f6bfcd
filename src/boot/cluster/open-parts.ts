/** What is opened one upon the other, and closed in the opposite order: also where one of them cannot be opened. */
interface Closable {
  close(): void | Promise<void>;
}

export class OpenParts {
  readonly #all: Closable[] = [];

  add<T extends Closable>(one: T): T {
    this.#all.push(one);
    return one;
  }

  /** All of them, though one fails: then the failure of the last is reported. */
  async close(): Promise<void> {
    const one = this.#all.pop();
    if (one === undefined) return;
    try {
      await one.close();
    } finally {
      await this.close();
    }
  }
}

/** What `open` answers, with a `close` of all that it has added. If it fails they are closed. */
export async function openTogether<T extends object>(
  open: (parts: OpenParts) => Promise<T>,
): Promise<T & { close(): Promise<void> }> {
  const parts = new OpenParts();
  try {
    return { ...(await open(parts)), close: () => parts.close() };
  } catch (error) {
    await parts.close();
    throw error;
  }
}
