import { useTexts } from '../texts/index.ts';
import { visible } from './visible.ts';

const DEEPEST = 6;

/** A JSON value as a table of names and values, with nothing in it hidden and nothing of it run. */
export function Value({ value, depth = 0 }: { value: unknown; depth?: number }) {
  const t = useTexts();
  if (value === null || value === undefined) return <span className="value none">{t.nothing}</span>;
  // A browser rounds such a number: it is not what runs, and must not look like it.
  if (typeof value === 'number' && Number.isInteger(value) && !Number.isSafeInteger(value)) {
    return (
      <span className="value number">
        ≈ {visible(value)} <em>{t.notExact}</em>
      </span>
    );
  }
  if (typeof value !== 'object') {
    return <span className={`value ${typeof value}`}>{visible(value)}</span>;
  }
  const entries = Object.entries(value);
  if (entries.length === 0) return <span className="value none">{t.nothing}</span>;
  if (depth > DEEPEST) return <span className="value">{visible(JSON.stringify(value))}</span>;
  return (
    <table className="values">
      <tbody>
        {entries.map(([name, item]) => (
          <tr key={name}>
            <th scope="row">{visible(name)}</th>
            <td>
              <Value value={item} depth={depth + 1} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** The simple values of an input in one line. */
export function Brief({ value }: { value: unknown }) {
  if (typeof value !== 'object' || value === null) return null;
  const simple = Object.values(value).filter(item => typeof item !== 'object');
  const text = visible(simple.join(' · '));
  return <span className="brief">{text.length > 80 ? `${text.slice(0, 80)}…` : text}</span>;
}
