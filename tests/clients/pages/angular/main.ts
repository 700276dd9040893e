// The template is compiled in the page, so that the build needs nothing of Angular's own.
import '@angular/compiler';
import { provideZonelessChangeDetection } from '@angular/core';
import { bootstrapApplication } from '@angular/platform-browser';

import { chatOfThePage } from '../page';
import { ChatComponent, STORED_CHAT } from './chat.component';

document.getElementById('page')!.append(document.createElement('app-chat'));
await bootstrapApplication(ChatComponent, {
  providers: [
    provideZonelessChangeDetection(),
    { provide: STORED_CHAT, useValue: await chatOfThePage() },
  ],
});
