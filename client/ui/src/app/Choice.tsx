import { useId } from 'react';

interface Props<Value extends string> {
  legend: string;
  value: Value;
  choices: readonly { value: Value; label: string; title?: string; isDisabled?: boolean }[];
  onChoose: (value: Value) => void;
}

/** A few choices beside each other, of which one holds. */
export function Choice<Value extends string>({ legend, value, choices, onChoose }: Props<Value>) {
  const name = useId();
  return (
    <fieldset className="choice">
      <legend className="unseen">{legend}</legend>
      {choices.map(choice => (
        <label key={choice.value} title={choice.title}>
          <input
            type="radio"
            name={name}
            value={choice.value}
            checked={choice.value === value}
            disabled={choice.isDisabled}
            onChange={() => onChoose(choice.value)}
          />
          <span>{choice.label}</span>
        </label>
      ))}
    </fieldset>
  );
}
