import { marked } from 'marked';

// A link or a note that is written elsewhere in the text: a block alone would not find it.
const DEFINITION = /^ {0,3}\[[^\]]+\]:/m;

/** Cuts Markdown into blocks that can be read alone. */
export const blocksOf = (text: string): string[] =>
  DEFINITION.test(text) ? [text] : marked.lexer(text).map(token => token.raw);
