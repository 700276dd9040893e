export interface MemorySocket {
  url: string;
  protocols: unknown;
  readyState: number;
  sent: any[];
  closedWith: number | undefined;
  open(): void;
  says(...frames: unknown[]): void;
  lose(code: number): void;
}
export function memorySockets(): { Socket: any; opened: MemorySocket[] };
