// What a report knows of itself; null on the page of a server.
import type { ComponentType } from "preact";

export interface Recording {
  made: number; // ms since 1970: what "now" is on its pages
  holds: (path: string) => boolean; // what may be asked
  Bar: ComponentType; // instead of the links to pages that it has not
}

let current: Recording | null = null;

export function recording(): Recording | null {
  return current;
}

export function setRecording(it: Recording): void {
  current = it;
}
