import { Bot, Download } from 'lucide-react';

import { Value } from '../approvals/Value.tsx';
import { visible } from '../approvals/visible.ts';
import { artifactPath } from '../server/api.ts';
import { useTexts } from '../texts/index.ts';

interface Props {
  chatId: string;
  type: string;
  data: unknown;
}

/** What the agent tells beside its words. */
export function DataPart({ chatId, type, data }: Props) {
  const t = useTexts();
  const told = (data ?? {}) as Record<string, unknown>;
  switch (type) {
    case 'data-approval':
      return null; // Shown by the card of its call.
    case 'data-adk-agent':
      return (
        <p className="about">
          <Bot aria-hidden /> {t.agentSpeaks(visible(told.agent))}
        </p>
      );
    case 'data-adk-artifact': {
      const filename = String(told.filename);
      return (
        <a className="chip" href={artifactPath(chatId, filename, Number(told.version))} download>
          <Download aria-hidden /> {t.savedFile(visible(filename))}
        </a>
      );
    }
    case 'data-adk-credential':
      return <SignIn uri={String(told.authUri ?? '')} />;
    case 'data-adk-error':
      return <p className="fault">{visible(told.message)}</p>;
    default:
      return (
        <details className="tool">
          <summary>
            <code>{visible(type)}</code>
          </summary>
          <Value value={data} />
        </details>
      );
  }
}

function SignIn({ uri }: { uri: string }) {
  const t = useTexts();
  return (
    <section className="card">
      <p>{t.signIn}</p>
      {/^https?:\/\//.test(uri) && (
        <a className="chip" href={uri} target="_blank" rel="noopener noreferrer">
          {t.signInOpen}
        </a>
      )}
      <p className="about">{t.signInTold}</p>
    </section>
  );
}
