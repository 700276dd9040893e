// Markdown as it streams: cut into blocks, so that only the last one is read again for each delta.

import { memo, useMemo, type ComponentProps } from 'react';
import ReactMarkdown, { type Components } from 'react-markdown';
import remarkGfm from 'remark-gfm';
import remend from 'remend';

import { blocksOf } from './blocks.ts';
import { CopyButton } from './CopyButton.tsx';

const PLUGINS = [remarkGfm];

function Link({ href, children }: ComponentProps<'a'>) {
  return (
    <a href={href} target="_blank" rel="noopener noreferrer nofollow">
      {children}
    </a>
  );
}

// Nothing is fetched from elsewhere, least of all because a model wrote its address.
function Image({ src, alt }: ComponentProps<'img'>) {
  return <Link href={typeof src === 'string' ? src : ''}>{alt || src}</Link>;
}

function Code({ children, ...rest }: ComponentProps<'pre'>) {
  return (
    <div className="code">
      <CopyButton text={() => plainText(children)} />
      <pre {...rest} tabIndex={0}>
        {children}
      </pre>
    </div>
  );
}

function plainText(node: unknown): string {
  if (typeof node === 'string') return node;
  if (Array.isArray(node)) return node.map(plainText).join('');
  const { props } = (node ?? {}) as { props?: { children?: unknown } };
  return props === undefined ? '' : plainText(props.children);
}

const Table = (props: ComponentProps<'table'>) => (
  <div className="scrolls" tabIndex={0} role="group">
    <table {...props} />
  </div>
);

const COMPONENTS: Components = { a: Link, img: Image, pre: Code, table: Table };

const Block = memo(function Block({ text }: { text: string }) {
  return (
    <ReactMarkdown remarkPlugins={PLUGINS} components={COMPONENTS}>
      {text}
    </ReactMarkdown>
  );
});

/** Shows text as Markdown; `isOpen` while more of it comes, which closes what is half written. */
export const Markdown = memo(function Markdown({ text, isOpen }: { text: string; isOpen: boolean }) {
  const blocks = useMemo(() => blocksOf(text), [text]);
  return (
    <div className="markdown">
      {blocks.map((block, at) => (
        <Block key={at} text={isOpen && at === blocks.length - 1 ? remend(block) : block} />
      ))}
    </div>
  );
});
