import { createRoot } from 'react-dom/client';

import { Chat } from './Chat';

createRoot(document.getElementById('page')!).render(<Chat />);
