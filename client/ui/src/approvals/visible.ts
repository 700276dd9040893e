// Control, bidi, zero-width, tag and filler characters: what could make a value look like another one.
const HIDDEN =
  /[^\P{Cc}\n\t]|[\p{Cf}\p{Cs}\p{Co}\p{Zl}\p{Zp}\u034F\u115F\u1160\u180B-\u180F\u2800\u3164\uFFA0\uFE00-\uFE0F\u{E0100}-\u{E01EF}]/gu;

/** Returns the text with every character shown that would otherwise not be seen. */
export const visible = (text: unknown): string =>
  String(text).replace(
    HIDDEN,
    char => `⟦U+${(char.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}⟧`,
  );

/** Returns the text without what could turn or break the line it stands in: for titles, which decide nothing. */
export const plain = (text: unknown): string => String(text).replace(/[\p{Cc}\p{Bidi_Control}]/gu, '');

export const names = (people: readonly string[], between: string): string =>
  people.map(visible).join(between);
