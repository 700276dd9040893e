import { usePrefs, type Language } from '../app/prefs.ts';
import { en, type Texts } from './en.ts';
import { ja } from './ja.ts';

export type { Texts };

const LANGUAGES: Record<Language, Texts> = { en, ja };
export const LANGUAGE_NAMES: Record<Language, string> = { en: 'English', ja: '日本語' };

/** Returns the page's words in the language that was chosen. */
export const useTexts = (): Texts => LANGUAGES[usePrefs().language];
