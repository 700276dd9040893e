import { FileText } from 'lucide-react';

import { visible } from '../approvals/visible.ts';
import { useTexts } from '../texts/index.ts';

const SHOWN_IMAGES = /^image\/(png|jpeg|gif|webp)$/;

export function FilePart({ url, mediaType, filename }: { url: string; mediaType: string; filename?: string }) {
  const t = useTexts();
  const name = visible(filename ?? mediaType);
  if (!url.startsWith('data:')) {
    return (
      <span className="chip">
        <FileText aria-hidden /> {name}
      </span>
    );
  }
  if (SHOWN_IMAGES.test(mediaType)) return <img className="picture" src={url} alt={filename ? name : t.file} />;
  if (mediaType.startsWith('audio/')) return <audio src={url} controls aria-label={name} />;
  return (
    <a className="chip" href={url} download={filename ?? 'file'}>
      <FileText aria-hidden /> {name}
    </a>
  );
}
