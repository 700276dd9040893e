import { Link } from 'lucide-react';

import { visible } from '../approvals/visible.ts';

export function SourcePart({ url, title }: { url?: string; title?: string }) {
  const label = visible(title ?? url ?? '');
  // An address that is not the web's is not made into a link: it might run something.
  if (url === undefined || !/^https?:\/\//.test(url)) {
    return (
      <span className="chip">
        <Link aria-hidden /> {label}
      </span>
    );
  }
  return (
    <a className="chip" href={url} target="_blank" rel="noopener noreferrer nofollow">
      <Link aria-hidden /> {label}
    </a>
  );
}
