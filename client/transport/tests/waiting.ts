/** Lets everything happen that needs no network. */
export const settled = (): Promise<void> => new Promise(resolve => setImmediate(resolve));

/** Waits until something holds; the test's own limit ends it. */
export async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await settled();
}
