import type { UIMessage } from 'ai';

/** Stands for a database. */
const chats = new Map<string, UIMessage[]>();

export const loadMessages = async (id: string) => chats.get(id) ?? [];

export const saveMessages = async (id: string, messages: UIMessage[]) => void chats.set(id, messages);
