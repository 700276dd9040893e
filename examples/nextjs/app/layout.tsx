import type { ReactNode } from 'react';

export const metadata = { title: 'Next.js and AI SDK 7' };

export default function Layout({ children }: { children: ReactNode }) {
  return (
    <html lang="en">
      <body>{children}</body>
    </html>
  );
}
