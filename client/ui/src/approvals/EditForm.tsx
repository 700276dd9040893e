// Arguments to run instead, one field for each; the server checks them against the tool's own schema.

import { useId, useState } from 'react';

import type { Schema } from '../server/api.ts';
import { useTexts } from '../texts/index.ts';
import { visible } from './visible.ts';

type Fields = Record<string, string>;

interface Props {
  input: Record<string, unknown>;
  schema: Schema;
  onApprove: (input: Record<string, unknown>) => void;
  onCancel: () => void;
  isDisabled: boolean;
}

const isText = (schema: Schema | undefined): boolean => schema?.type === 'string';
const isNumber = (schema: Schema | undefined): boolean =>
  schema?.type === 'number' || schema?.type === 'integer';

export function EditForm({ input, schema, onApprove, onCancel, isDisabled }: Props) {
  const t = useTexts();
  const form = useId();
  const properties = schema.properties ?? {};
  const shown = [...new Set([...Object.keys(properties), ...Object.keys(input)])];
  const [fields, setFields] = useState<Fields>(() =>
    Object.fromEntries(
      shown
        .filter(name => name in input)
        .map(name => [name, isText(properties[name]) ? String(input[name]) : JSON.stringify(input[name])]),
    ),
  );
  const [fault, setFault] = useState('');

  const approve = () => {
    const edited: Record<string, unknown> = {};
    for (const name of shown) {
      const text = fields[name];
      // What was left out stays left out: the tool has a default for it.
      if (text === undefined || (text === '' && !(name in input))) continue;
      if (isText(properties[name])) {
        edited[name] = text;
        continue;
      }
      try {
        edited[name] = JSON.parse(text) as unknown;
      } catch {
        setFault(isNumber(properties[name]) ? t.notANumber(name) : t.notJson(name));
        return;
      }
      if (isNumber(properties[name]) && typeof edited[name] !== 'number') {
        setFault(t.notANumber(name));
        return;
      }
    }
    setFault('');
    onApprove(edited);
  };

  return (
    <form
      className="edit"
      // Enter in a field approves nothing.
      onSubmit={event => event.preventDefault()}
    >
      {shown.map(name => {
        const field = `${form}-${name}`;
        const about = properties[name];
        const set = (value: string) => setFields(known => ({ ...known, [name]: value }));
        return (
          <div className="field" key={name}>
            <label htmlFor={field}>{visible(name)}</label>
            {about?.enum ? (
              <select id={field} value={fields[name] ?? ''} onChange={event => set(event.target.value)}>
                {/* Left out: the tool has a default for it. */}
                {!(name in input) && <option value="" />}
                {about.enum.map(choice => {
                  const value = isText(about) ? String(choice) : JSON.stringify(choice);
                  return (
                    <option key={value} value={value}>
                      {visible(choice)}
                    </option>
                  );
                })}
              </select>
            ) : (
              <input
                id={field}
                type="text"
                inputMode={isNumber(about) ? 'decimal' : 'text'}
                value={fields[name] ?? ''}
                onChange={event => set(event.target.value)}
                autoComplete="off"
              />
            )}
            {about?.description && <p className="about">{visible(about.description)}</p>}
          </div>
        );
      })}
      {fault && (
        <p className="fault" role="alert">
          {fault}
        </p>
      )}
      <div className="buttons">
        <button type="button" onClick={onCancel} disabled={isDisabled}>
          {t.keepArguments}
        </button>
        <button type="button" className="approve" disabled={isDisabled} onClick={approve}>
          {t.approveChanged}
        </button>
      </div>
    </form>
  );
}
