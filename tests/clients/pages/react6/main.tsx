import { createRoot } from 'react-dom/client';

import { chatOfThePage } from '../page';
import { Chat } from './Chat';

createRoot(document.getElementById('page')!).render(<Chat stored={await chatOfThePage()} />);
