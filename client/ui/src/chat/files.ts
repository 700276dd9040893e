// Files that go with a message, inline: what the server takes, and no more.

import type { FileUIPart } from 'ai';

const LARGEST = 5 * 1024 * 1024;
const TAKEN = new Set([
  'image/png',
  'image/jpeg',
  'image/gif',
  'image/webp',
  'application/pdf',
  'audio/wav',
  'audio/mpeg',
  'text/plain',
  'text/csv',
  'text/markdown',
  'application/json',
]);
export const ACCEPTED = [...TAKEN].join(',');

export interface Attached {
  taken: FileUIPart[];
  tooLarge: string[];
  notTaken: string[];
}

const dataUrl = (file: File): Promise<string> =>
  new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result as string);
    reader.onerror = () => reject(reader.error ?? new Error('The file cannot be read.'));
    reader.readAsDataURL(file);
  });

export async function attach(files: Iterable<File>): Promise<Attached> {
  const attached: Attached = { taken: [], tooLarge: [], notTaken: [] };
  for (const file of files) {
    if (!TAKEN.has(file.type)) attached.notTaken.push(file.name);
    else if (file.size > LARGEST) attached.tooLarge.push(file.name);
    else {
      const url = await dataUrl(file);
      attached.taken.push({ type: 'file', mediaType: file.type, filename: file.name, url });
    }
  }
  return attached;
}
