import { ArrowUp, Paperclip, Square, X } from 'lucide-react';
import type { FileUIPart } from 'ai';
import { useEffect, useRef, useState, type ReactNode } from 'react';

import { FilePart } from '../parts/FilePart.tsx';
import { useTexts } from '../texts/index.ts';
import { ACCEPTED, attach } from './files.ts';

export interface Draft {
  text: string;
  files: FileUIPart[];
}

interface Props {
  draft: Draft;
  setDraft: (change: (draft: Draft) => Draft) => void;
  isBusy: boolean;
  isStopping: boolean;
  onSend: () => void;
  onStop: () => void;
  onRefused: (text: string) => void;
  /** The microphone, in modes that have one. */
  children?: ReactNode;
}

export function Composer({ draft, setDraft, isBusy, isStopping, onSend, onStop, onRefused, children }: Props) {
  const t = useTexts();
  const field = useRef<HTMLTextAreaElement>(null);
  const chooser = useRef<HTMLInputElement>(null);
  const [isOver, setOver] = useState(false);
  const isEmpty = draft.text.trim() === '' && draft.files.length === 0;

  useEffect(() => {
    const area = field.current;
    if (area === null) return;
    area.style.height = 'auto';
    area.style.height = `${Math.min(area.scrollHeight, 240)}px`;
  }, [draft.text]);

  useEffect(() => {
    // A file that is dropped beside the field would replace the page.
    const refuse = (event: DragEvent) => event.preventDefault();
    addEventListener('dragover', refuse);
    addEventListener('drop', refuse);
    return () => {
      removeEventListener('dragover', refuse);
      removeEventListener('drop', refuse);
    };
  }, []);

  const add = async (files: Iterable<File>) => {
    // Copied at once: the list of a chooser is emptied with it.
    const { taken, tooLarge, notTaken } = await attach([...files]);
    if (taken.length > 0) setDraft(now => ({ ...now, files: [...now.files, ...taken] }));
    const refused = [...tooLarge.map(t.fileTooLarge), ...notTaken.map(t.fileNotTaken)];
    if (refused.length > 0) onRefused(refused.join(' '));
    field.current?.focus();
  };

  return (
    <form
      className={isOver ? 'composer over' : 'composer'}
      onSubmit={event => {
        event.preventDefault();
        // While an answer runs, too: it is interrupted.
        if (!isEmpty) onSend();
      }}
      onDragOver={event => {
        event.preventDefault();
        setOver(true);
      }}
      onDragLeave={() => setOver(false)}
      onDrop={event => {
        event.preventDefault();
        setOver(false);
        void add(event.dataTransfer.files);
      }}
    >
      {isOver && <p className="drop">{t.dropHere}</p>}
      {draft.files.length > 0 && (
        <ul className="attached">
          {draft.files.map((file, at) => (
            <li key={at}>
              <FilePart {...file} />
              <button
                type="button"
                className="icon small"
                title={t.removeFile(file.filename ?? '')}
                onClick={() => setDraft(now => ({ ...now, files: now.files.filter(other => other !== file) }))}
              >
                <X aria-hidden />
                <span className="unseen">{t.removeFile(file.filename ?? '')}</span>
              </button>
            </li>
          ))}
        </ul>
      )}
      <div className="line">
        <button type="button" className="icon" title={t.attach} onClick={() => chooser.current?.click()}>
          <Paperclip aria-hidden />
          <span className="unseen">{t.attach}</span>
        </button>
        <input
          ref={chooser}
          type="file"
          multiple
          hidden
          accept={ACCEPTED}
          onChange={event => {
            void add(event.target.files ?? []);
            event.target.value = '';
          }}
        />
        <textarea
          ref={field}
          rows={1}
          aria-label={t.message}
          placeholder={t.saySomething}
          value={draft.text}
          autoFocus
          onChange={event => setDraft(now => ({ ...now, text: event.target.value }))}
          onPaste={event => {
            // Text that brings a picture of itself, as that of spreadsheets does, is text.
            const { files, types } = event.clipboardData;
            if (files.length === 0 || types.includes('text/plain')) return;
            event.preventDefault();
            void add(files);
          }}
          onKeyDown={event => {
            // Composing: Enter chooses a Japanese word. Safari tells it only by the code 229.
            const isComposing = event.nativeEvent.isComposing || event.keyCode === 229;
            if (event.key !== 'Enter' || event.shiftKey || isComposing) return;
            event.preventDefault();
            event.currentTarget.form?.requestSubmit();
          }}
        />
        {children}
        {isBusy && isEmpty ? (
          <button type="button" className="send" title={t.stop} disabled={isStopping} onClick={onStop}>
            <Square aria-hidden />
            <span className="unseen">{isStopping ? t.stopping : t.stop}</span>
          </button>
        ) : (
          <button type="submit" className="send" title={t.send} disabled={isEmpty}>
            <ArrowUp aria-hidden />
            <span className="unseen">{t.send}</span>
          </button>
        )}
      </div>
    </form>
  );
}
