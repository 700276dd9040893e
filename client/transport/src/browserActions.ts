// Tools that many pages have, for `BrowserTools`.

/** What `getLocation` returns. */
export interface Location {
  latitude: number;
  longitude: number;
  /** In metres. */
  accuracy: number;
}

/** A tool that asks the browser where the user is; a refusal is an error that the model is told. */
export function getLocation(
  options: PositionOptions = { timeout: 20_000 },
): () => Promise<Location> {
  return () =>
    new Promise((resolve, reject) => {
      const { geolocation } = globalThis.navigator ?? {};
      if (geolocation === undefined) {
        reject(new Error('This browser cannot tell where it is.'));
        return;
      }
      geolocation.getCurrentPosition(
        ({ coords: { latitude, longitude, accuracy } }) =>
          resolve({ latitude, longitude, accuracy }),
        ({ code, message }) => reject(new Error(REFUSALS[code] ?? message)),
        options,
      );
    });
}

const REFUSALS: Record<number, string> = {
  1: 'The user did not allow the browser to tell the location.',
  2: 'The browser could not find out the location.',
  3: 'The browser did not find out the location in time.',
};

/** What plays music in a page. */
export interface Player {
  /** Plays a track and stops the one before; throws if it does not know it. */
  play(track: string): void | PromiseLike<void>;
}

/** A tool that changes the music: it takes `{ track }`. */
export function changeBgm(player: Player): (input: { track: string | number }) => Promise<object> {
  return async ({ track }) => {
    await player.play(String(track));
    return { playing: track };
  };
}
