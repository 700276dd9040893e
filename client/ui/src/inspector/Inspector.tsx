import { useVirtualizer } from '@tanstack/react-virtual';
import { ArrowDownLeft, ArrowUpRight, Download, Play, Trash2, X } from 'lucide-react';
import type { RecordingEntry } from 'adk-stream-client';
import { useEffect, useMemo, useRef, useState } from 'react';

import { Choice } from '../app/Choice.tsx';
import { visible } from '../approvals/visible.ts';
import { useTexts } from '../texts/index.ts';
import { clearTape, recorder, useTape } from './tape.ts';

type Way = 'both' | 'in' | 'out';

interface Props {
  onClose: () => void;
  onReplay: (file: File) => void;
}

const CLOSED_ROW = 30;

/** Every request and every chunk, both ways. */
export function Inspector({ onClose, onReplay }: Props) {
  const t = useTexts();
  const tape = useTape();
  const [way, setWay] = useState<Way>('both');
  const [filter, setFilter] = useState('');
  const [openAt, setOpenAt] = useState<RecordingEntry>();
  const chooser = useRef<HTMLInputElement>(null);
  const scroll = useRef<HTMLDivElement>(null);
  const shown = useMemo(() => {
    const wanted = filter.toLowerCase();
    return tape.filter(
      entry =>
        (way === 'both' || entry.direction === way) &&
        (wanted === '' || JSON.stringify(entry).toLowerCase().includes(wanted)),
    );
  }, [tape, way, filter]);
  const rows = useVirtualizer({
    count: shown.length,
    getScrollElement: () => scroll.current,
    estimateSize: () => CLOSED_ROW,
    overscan: 12,
  });
  // Where the newest is, unless somebody reads further up.
  const isAtEnd = useRef(true);
  useEffect(() => {
    if (isAtEnd.current && shown.length > 0) rows.scrollToIndex(shown.length - 1);
  }, [shown.length]);

  return (
    <aside className="inspector" aria-label={t.inspector}>
      <header>
        <div>
          <h2>{t.inspector}</h2>
          <p className="about">{t.inspectorTold}</p>
        </div>
        <button type="button" className="icon" title={t.close} onClick={onClose}>
          <X aria-hidden />
          <span className="unseen">{t.close}</span>
        </button>
      </header>
      <div className="controls">
        <input
          type="search"
          value={filter}
          placeholder={t.filter}
          aria-label={t.filter}
          onChange={event => setFilter(event.target.value)}
        />
        <Choice
          legend={t.inspector}
          value={way}
          onChoose={setWay}
          choices={[
            { value: 'both', label: t.both },
            { value: 'in', label: t.sent },
            { value: 'out', label: t.received },
          ]}
        />
        <div className="buttons">
          <button type="button" onClick={download} disabled={tape.length === 0}>
            <Download aria-hidden /> {t.download}
          </button>
          <button type="button" onClick={() => chooser.current?.click()}>
            <Play aria-hidden /> {t.replay}
          </button>
          <button type="button" onClick={clearTape} disabled={tape.length === 0}>
            <Trash2 aria-hidden /> {t.clear}
          </button>
          <input
            ref={chooser}
            type="file"
            hidden
            accept=".jsonl,.ndjson,application/x-ndjson"
            aria-label={t.replay}
            onChange={event => {
              const [file] = event.target.files ?? [];
              if (file) onReplay(file);
              event.target.value = '';
            }}
          />
        </div>
        <p className="about" role="status">
          {shown.length > 0 ? t.entries(shown.length) : tape.length === 0 ? t.nothingRecorded : t.noMatch}
        </p>
      </div>
      <div
        className="rows"
        ref={scroll}
        tabIndex={0}
        role="group"
        aria-label={t.inspectorTold}
        onScroll={({ currentTarget: node }) => {
          isAtEnd.current = node.scrollHeight - node.scrollTop - node.clientHeight < 2 * CLOSED_ROW;
        }}
      >
        <div style={{ height: rows.getTotalSize(), position: 'relative' }}>
          {rows.getVirtualItems().map(row => {
            const entry = shown[row.index] as RecordingEntry;
            return (
              <div
                key={row.key}
                data-index={row.index}
                ref={rows.measureElement}
                className={`entry ${entry.direction}`}
                style={{ transform: `translateY(${row.start}px)` }}
              >
                <button
                  type="button"
                  aria-expanded={entry === openAt}
                  onClick={() => setOpenAt(entry === openAt ? undefined : entry)}
                >
                  {entry.direction === 'in' ? <ArrowUpRight aria-hidden /> : <ArrowDownLeft aria-hidden />}
                  <span className="unseen">{entry.direction === 'in' ? t.sent : t.received}</span>
                  <time>{entry.at.toFixed(3)}</time>
                  <code>{visible(kindOf(entry))}</code>
                  <span className="brief">{visible(briefOf(entry))}</span>
                </button>
                {entry === openAt && (
                  <pre tabIndex={0}>{visible(JSON.stringify(entry, null, 2))}</pre>
                )}
              </div>
            );
          })}
        </div>
      </div>
    </aside>
  );
}

type Chunk = { type?: string; delta?: unknown; toolName?: unknown; toolCallId?: unknown; errorText?: unknown };
const chunkOf = (entry: RecordingEntry): Chunk => ((entry as { chunk?: Chunk }).chunk ?? {}) as Chunk;

const kindOf = (entry: RecordingEntry): string => chunkOf(entry).type ?? entry.type;

function briefOf(entry: RecordingEntry): string {
  const { delta, toolName, toolCallId, errorText } = chunkOf(entry);
  const told = delta ?? toolName ?? errorText ?? toolCallId ?? (entry as { errorText?: unknown }).errorText;
  return typeof told === 'string' ? told : '';
}

function download(): void {
  const address = URL.createObjectURL(new Blob([recorder.toJsonl()], { type: 'application/x-ndjson' }));
  const link = document.createElement('a');
  link.href = address;
  link.download = `adk-stream-${new Date().toISOString().replaceAll(':', '')}.jsonl`;
  link.click();
  URL.revokeObjectURL(address);
}
