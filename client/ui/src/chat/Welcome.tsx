import { Sparkles } from 'lucide-react';

import { useTexts } from '../texts/index.ts';

export function Welcome({ onChoose }: { onChoose: (text: string) => void }) {
  const t = useTexts();
  return (
    <div className="welcome">
      <Sparkles aria-hidden />
      <h2>{t.welcome}</h2>
      <p>{t.welcomeTold}</p>
      <ul>
        {t.examples.map(example => (
          <li key={example}>
            <button type="button" onClick={() => onChoose(example)}>
              {example}
            </button>
          </li>
        ))}
      </ul>
    </div>
  );
}
