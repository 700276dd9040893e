import { ChevronRight } from 'lucide-react';

import { useTexts } from '../texts/index.ts';
import { Markdown } from './Markdown.tsx';

export function Reasoning({ text, isOpen }: { text: string; isOpen: boolean }) {
  const t = useTexts();
  if (text === '' && !isOpen) return null;
  return (
    <details className="reasoning">
      <summary>
        <ChevronRight aria-hidden className="turner" />
        <span className={isOpen ? 'shimmer' : undefined}>{isOpen ? t.thinking : t.thoughts}</span>
      </summary>
      <Markdown text={text} isOpen={isOpen} />
    </details>
  );
}
