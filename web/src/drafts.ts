// What the user has begun to write, which another page or a reload does not lose. It is kept for
// this tab only, and holds no token.

// Where the browser keeps nothing, or no more, the page works without.
function stored(change: (storage: Storage) => string | null | void): string | null {
  try {
    return change(sessionStorage) ?? null;
  } catch {
    return null;
  }
}

export function draftOf(id: string): string | null {
  return stored((storage) => storage.getItem(`shirabe.draft/${id}`));
}

export function keepDraft(id: string, text: string | null): void {
  stored((storage) => text === null
    ? storage.removeItem(`shirabe.draft/${id}`) : storage.setItem(`shirabe.draft/${id}`, text));
}
