import { X } from 'lucide-react';
import { useEffect, useId, useRef, type ReactNode } from 'react';

import { useTexts } from '../texts/index.ts';

interface Props {
  title: string;
  about?: string;
  className?: string;
  onClose: () => void;
  children: ReactNode;
}

/** The browser's own modal dialog: it keeps the focus, closes with Escape, and gives the focus back. */
export function Dialog({ title, about, className, onClose, children }: Props) {
  const t = useTexts();
  const heading = useId();
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const node = dialog.current;
    node?.showModal();
    return () => node?.close();
  }, []);
  return (
    <dialog
      ref={dialog}
      className={className}
      aria-labelledby={heading}
      onClose={onClose}
      onClick={event => {
        // The backdrop belongs to the dialog itself.
        if (event.target === dialog.current) onClose();
      }}
    >
      <div className="inside">
        <header>
          <div>
            <h2 id={heading}>{title}</h2>
            {about && <p className="about">{about}</p>}
          </div>
          <button type="button" className="icon" title={t.close} onClick={onClose}>
            <X aria-hidden />
            <span className="unseen">{t.close}</span>
          </button>
        </header>
        {children}
      </div>
    </dialog>
  );
}
