// Text on a canvas that has so much room and no more.

// Anything that measures a text: the context of a canvas.
interface Measure {
  measureText: (text: string) => { width: number };
}

// Cut with a sign that it is cut, where it is longer.
export function fitted(context: Measure, text: string, room: number): string {
  if (context.measureText(text).width <= room) return text;
  let [low, high] = [0, text.length - 1]; // letters that fit, and that may
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (context.measureText(`${text.slice(0, middle)}…`).width <= room) low = middle;
    else high = middle - 1;
  }
  return `${text.slice(0, low)}…`;
}

// Of so many texts side by side each how-manyth has room for a few letters.
export function everyNth(n: number, width: number, least = 36): number {
  return n < 2 ? 1 : Math.max(1, Math.ceil(least / (width / n)));
}

// Where a text in the middle of a place begins to stand out of the picture, it moves in.
export function within(middle: number, width: number, [left, right]: [number, number]): number {
  return Math.max(left + width / 2, Math.min(right - width / 2, middle));
}
