import { createRoot } from 'react-dom/client';

import { chatOfThePage } from '../page';
import { Chat } from '../react/Chat';
import { Tool } from './Tool';

createRoot(document.getElementById('page')!).render(
  <Chat stored={await chatOfThePage()} Tool={Tool} />,
);
