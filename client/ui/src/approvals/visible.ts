// Control, bidi, zero-width, tag and filler characters: what could make a value look like another one.
const HIDDEN =
  /[^\P{Cc}\n\t]|[\p{Cf}\p{Cs}\p{Co}\p{Zl}\p{Zp}\u115F\u1160\u2800\u3164\uFFA0\uFE00-\uFE0F\u{E0100}-\u{E01EF}]/gu;

/** Returns the text with every character shown that would otherwise not be seen. */
export const visible = (text: unknown): string =>
  String(text).replace(
    HIDDEN,
    char => `⟦U+${(char.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}⟧`,
  );

export const names = (people: readonly string[], between: string): string =>
  people.map(visible).join(between);
