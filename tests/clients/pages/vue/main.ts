import { createApp } from 'vue';

import { chatOfThePage } from '../page';
import Chat from './Chat.vue';

createApp(Chat, { stored: await chatOfThePage() }).mount('#page');
