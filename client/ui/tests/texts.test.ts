import { readdirSync, readFileSync } from 'node:fs';

import { expect, test } from 'vitest';

import { en } from '../src/texts/en.ts';
import { ja } from '../src/texts/ja.ts';

test('the languages say the same things', () => {
  expect(Object.keys(ja).sort()).toEqual(Object.keys(en).sort());
  expect(ja.examples).toHaveLength(en.examples.length);
});

test('each text is shown somewhere', () => {
  const folder = new URL('../src/', import.meta.url).pathname;
  const source = readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter(name => /\.tsx?$/.test(name))
    .map(name => readFileSync(`${folder}${name}`, 'utf8'))
    .join('\n');
  const unused = Object.keys(en).filter(name => !new RegExp(`\\bt\\.${name}\\b`).test(source));
  expect(unused).toEqual([]);
});
