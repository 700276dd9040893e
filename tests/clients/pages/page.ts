import { loadChat } from './chat';
import { tools } from './tools';

declare global {
  interface Window {
    /** Which tools ran since the page was loaded, for the tests to see. */
    ran: string[];
  }
}

window.ran = [];
for (const [name, run] of Object.entries(tools)) {
  tools[name] = input => {
    window.ran.push(name);
    return run(input);
  };
}

/** Loads the chat that the page's address names. */
export const chatOfThePage = () => loadChat(new URLSearchParams(location.search).get('chat')!);
