import * as Menu from '@radix-ui/react-dropdown-menu';
import { BookOpen, Check, Settings } from 'lucide-react';

import { LANGUAGE_NAMES, useTexts } from '../texts/index.ts';
import { choose, usePrefs, type Language, type Theme } from './prefs.ts';

const THEMES: Theme[] = ['system', 'light', 'dark'];
const LANGUAGES: Language[] = ['en', 'ja'];

export function SettingsMenu() {
  const t = useTexts();
  const { theme, language } = usePrefs();
  return (
    // Not modal: a modal menu locks scrolling by a style element, which the page's policy refuses.
    <Menu.Root modal={false}>
      <Menu.Trigger className="row">
        <Settings aria-hidden /> {t.settings}
      </Menu.Trigger>
      <Menu.Portal>
        <Menu.Content className="menu" side="top" align="start" sideOffset={6}>
          <Menu.Label>{t.theme}</Menu.Label>
          <Menu.RadioGroup value={theme} onValueChange={value => choose({ theme: value as Theme })}>
            {THEMES.map(value => (
              <Item key={value} value={value} label={t.themes[value]} />
            ))}
          </Menu.RadioGroup>
          <Menu.Separator />
          <Menu.Label>{t.language}</Menu.Label>
          <Menu.RadioGroup value={language} onValueChange={value => choose({ language: value as Language })}>
            {LANGUAGES.map(value => (
              <Item key={value} value={value} label={LANGUAGE_NAMES[value]} lang={value} />
            ))}
          </Menu.RadioGroup>
          <Menu.Separator />
          <Menu.Item asChild>
            <a href="docs" target="_blank" rel="noopener">
              <BookOpen aria-hidden /> {t.apiReference}
            </a>
          </Menu.Item>
        </Menu.Content>
      </Menu.Portal>
    </Menu.Root>
  );
}

function Item({ value, label, lang }: { value: string; label: string; lang?: string }) {
  return (
    <Menu.RadioItem value={value} lang={lang}>
      <span className="mark">
        <Menu.ItemIndicator>
          <Check aria-hidden />
        </Menu.ItemIndicator>
      </span>
      {label}
    </Menu.RadioItem>
  );
}
