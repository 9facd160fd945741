// Where a logarithmic axis has lines and numbers. uPlot's own are labelled at powers of ten alone
// where the axis is horizontal, and begin at whatever number the axis begins with. Pure.
import { niceValues } from "./axes.js";

// Digits that are labelled together, the most first: those with room for each.
const DIGITS = [[1, 2, 3, 4, 5, 6, 7, 8, 9], [1, 2, 3, 5, 7], [1, 2, 5], [1]];
const FEW = 3; // fewer numbers of one digit tell little: then round ones with more digits

// Numbers with one digit other than 0 from `low` > 0 to `high`, or round ones where that is narrow.
export function logSplits(low: number, high: number): number[] {
  const values: number[] = [];
  const [from, to] = [Math.floor(Math.log10(low)), Math.ceil(Math.log10(high))];
  for (let power = from; power <= to; ++power) {
    for (const digit of DIGITS[0]!) {
      const value = Number(`${digit}e${power}`);
      if (value >= low && value <= high) values.push(value);
    }
  }
  return values.length >= FEW ? values : niceValues(low, high, 4);
}

const digitOf = (value: number): number => Number(value.toExponential()[0]);

// The least distance in pixels of neighbours, as far as they are kept.
function leastGap(values: (number | null)[], placeOf: (value: number) => number): number {
  let [least, last] = [Infinity, NaN];
  for (const value of values) {
    if (value === null) continue;
    const place = placeOf(value);
    if (!Number.isNaN(last)) least = Math.min(least, Math.abs(place - last));
    last = place;
  }
  return least;
}

// Which of them get a number, `space` pixels apart at least; null for the others.
export function logLabels(
  splits: number[], space: number, placeOf: (value: number) => number,
): (number | null)[] {
  const known = splits.every((value) => value === Number(`${digitOf(value)}e` +
    `${Math.floor(Math.log10(value) + 1e-9)}`));
  for (const digits of known ? DIGITS : [DIGITS[0]!]) {
    const kept = splits.map((value) => (digits.includes(digitOf(value)) ? value : null));
    if (kept.filter((value) => value !== null).length < 2) continue;
    if (leastGap(kept, placeOf) >= space) return kept;
  }
  // No digits have room: as many powers of ten, or numbers, as there is room for.
  const powers = known && splits.filter((value) => digitOf(value) === 1).length > 1;
  let last = NaN;
  return splits.map((value) => {
    if (powers && digitOf(value) !== 1) return null;
    const place = placeOf(value);
    if (Math.abs(place - last) < space) return null;
    last = place;
    return value;
  });
}
