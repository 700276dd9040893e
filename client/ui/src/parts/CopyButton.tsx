import { Check, Copy } from 'lucide-react';
import { useEffect, useState } from 'react';

import { useTexts } from '../texts/index.ts';

const SHOWN = 1500;

export function CopyButton({ text }: { text: () => string }) {
  const t = useTexts();
  const [isCopied, setCopied] = useState(false);
  useEffect(() => {
    if (!isCopied) return undefined;
    const timer = setTimeout(() => setCopied(false), SHOWN);
    return () => clearTimeout(timer);
  }, [isCopied]);
  const copy = () => {
    // Missing where the page comes over plain http from another machine.
    void navigator.clipboard?.writeText(text()).then(() => setCopied(true));
  };
  return (
    <button type="button" className="icon small" onClick={copy} title={isCopied ? t.copied : t.copy}>
      {isCopied ? <Check aria-hidden /> : <Copy aria-hidden />}
      <span className="unseen" aria-live="polite">
        {isCopied ? t.copied : t.copy}
      </span>
    </button>
  );
}
