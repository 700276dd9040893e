import { createRoot } from 'react-dom/client';

import { Chat } from './Chat';

const query = new URLSearchParams(location.search);

createRoot(document.getElementById('page')!).render(
  <Chat id={query.get('chat')!} habits={query.get('habits') as 'seeds' | 'template'} />,
);
