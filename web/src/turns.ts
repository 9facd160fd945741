// Long work in short turns: a generator yields wherever it may stop, and goes on in a task of its
// own, so that the page answers meanwhile. No turn of it holds the page up for 50 ms.

export const TURN_MS = 10;

// Between two tasks; setTimeout would wait for 4 ms each time.
function nextTask(): Promise<void> {
  return new Promise((resolve) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => {
      port1.close();
      resolve();
    };
    port2.postMessage(null);
  });
}

let last: Promise<unknown> = Promise.resolve();

async function run<T>(work: Generator<void, T>, abort: AbortSignal): Promise<T | null> {
  for (;;) {
    await nextTask();
    const until = performance.now() + TURN_MS;
    do {
      if (abort.aborted) return null;
      const step = work.next();
      if (step.done) return step.value;
    } while (performance.now() < until);
  }
}

// What the work gives; null if it was given up. One after the other: two do not share a turn.
export function inTurns<T>(work: Generator<void, T>, abort: AbortSignal): Promise<T | null> {
  const mine = last.then(() => run(work, abort));
  last = mine.catch(() => undefined);
  return mine;
}
