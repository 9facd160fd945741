// A colour that belongs to a trial's number, whatever else is shown: the hues of neighbours are far
// apart, and all are about as light (--curve of the style). Pure function.

const GOLDEN_ANGLE = 137.508;

export function trialColour(trial: number, lightness: number, alpha = 1): string {
  const light = lightness + ((trial % 3) - 1) * 0.08;
  const hue = (trial * GOLDEN_ANGLE) % 360;
  return `oklch(${light.toFixed(2)} 0.15 ${hue.toFixed(1)} / ${alpha})`;
}
