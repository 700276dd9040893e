import { CircleAlert, Info, X } from 'lucide-react';

import { useTexts } from '../texts/index.ts';

export interface NoticeContent {
  kind: 'fault' | 'info';
  text: string;
  action?: { label: string; run: () => void };
}

export function Notice({ content, dismiss }: { content: NoticeContent; dismiss?: () => void }) {
  const t = useTexts();
  const { kind, text, action } = content;
  return (
    <div className={`notice ${kind}`} role={kind === 'fault' ? 'alert' : 'status'}>
      {kind === 'fault' ? <CircleAlert aria-hidden /> : <Info aria-hidden />}
      <p>{text}</p>
      {action && (
        <button type="button" onClick={action.run}>
          {action.label}
        </button>
      )}
      {dismiss && (
        <button type="button" className="icon small" title={t.dismiss} onClick={dismiss}>
          <X aria-hidden />
          <span className="unseen">{t.dismiss}</span>
        </button>
      )}
    </div>
  );
}
