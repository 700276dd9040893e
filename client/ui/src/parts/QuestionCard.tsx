import { useId, useState } from 'react';

import { Value } from '../approvals/Value.tsx';
import { visible } from '../approvals/visible.ts';
import { useTexts } from '../texts/index.ts';

/** A question of the agent's workflow; the answer is the call's output. */
export function QuestionCard({ input, answer }: { input: unknown; answer: (text: string) => void }) {
  const t = useTexts();
  const field = useId();
  const [text, setText] = useState('');
  const { message, ...rest } = (input ?? {}) as { message?: unknown };
  return (
    <form
      className="card"
      onSubmit={event => {
        event.preventDefault();
        if (text.trim() !== '') answer(text.trim());
      }}
    >
      <label htmlFor={field}>
        <strong>{t.question}</strong> {typeof message === 'string' ? visible(message) : ''}
      </label>
      {Object.keys(rest).length > 0 && <Value value={rest} />}
      <div className="buttons">
        <input id={field} className="reason" value={text} onChange={event => setText(event.target.value)} />
        <button type="submit" className="approve">
          {t.answer}
        </button>
      </div>
    </form>
  );
}
