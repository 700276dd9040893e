import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';

import { App } from './app/App.tsx';
import './styles/page.css';

const root = document.getElementById('page');
if (root === null) throw new Error('The page has no place to draw in.');
createRoot(root).render(
  <StrictMode>
    <App />
  </StrictMode>,
);
