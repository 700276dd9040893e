import '../page';

import { useState } from 'react';
import { createRoot } from 'react-dom/client';

import { Assistant } from './Assistant';

/** The page's address names the thread. */
function Page() {
  const [id, setId] = useState(new URLSearchParams(location.search).get('chat') ?? undefined);
  return (
    <Assistant
      threadId={id}
      onThreadIdChange={next => {
        history.replaceState(null, '', next === undefined ? '.' : `?chat=${next}`);
        setId(next);
      }}
    />
  );
}

createRoot(document.getElementById('page')!).render(<Page />);
