import { mount } from 'svelte';

import { chatOfThePage } from '../page';
import Chat from './Chat.svelte';

mount(Chat, { target: document.getElementById('page')!, props: { stored: await chatOfThePage() } });
