// What a program printed, made harmless and short enough to be shown: no control sequences, no line
// of megabytes, only the end of a log that is longer than a page can hold. Pure functions.

// CSI, OSC and the two-letter sequences of a terminal.
const SEQUENCES = new RegExp(
  "\\u001b\\[[0-?]*[ -/]*[@-~]|" +
    "\\u001b\\][^\\u0007\\u001b]*(?:\\u0007|\\u001b\\\\)|\\u001b[ -/]*[0-~]",
  "g",
);
const CONTROLS = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069]/g;

export const LONGEST_LINE = 4000;
export const LONGEST_LOG = 2_000_000;

// A program that draws a progress bar writes over its line: what stands there in the end is shown.
function overwritten(line: string): string {
  const text = line.endsWith("\r") ? line.slice(0, -1) : line;
  return text.slice(text.lastIndexOf("\r") + 1);
}

export function printableLine(line: string, length = line.length): string {
  const clean = overwritten(line).replace(SEQUENCES, "").replace(CONTROLS, "\ufffd");
  if (clean.length <= LONGEST_LINE && line.length === length) return clean;
  return `${clean.slice(0, LONGEST_LINE)} … (a line of ${length} characters)`;
}

export class LogText {
  lines: string[] = [];
  dropped = 0; // lines that were left out at the beginning
  private size = 0;
  private rest = ""; // of a line that is not complete, its beginning
  private length = 0; // and how long it is in all

  add(text: string): void {
    let from = 0;
    for (let end = text.indexOf("\n"); end >= 0; end = text.indexOf("\n", from)) {
      this.extend(text, from, end);
      this.push(printableLine(this.rest, this.length));
      this.rest = "";
      this.length = 0;
      from = end + 1;
    }
    this.extend(text, from, text.length);
    let drop = 0;
    while (this.size > LONGEST_LOG) this.size -= this.lines[drop++]!.length + 1;
    if (drop > 0) this.lines.splice(0, drop);
    this.dropped += drop;
  }
  // Most of a line that will be cut is not even kept, unless it writes over itself.
  private extend(text: string, from: number, to: number): void {
    const room = 16 * LONGEST_LINE - this.rest.length;
    this.rest += text.slice(from, Math.min(to, from + Math.max(0, room)));
    this.length += to - from;
  }
  private push(line: string): void {
    this.lines.push(line);
    this.size += line.length + 1;
  }
  // With the last line, which may not be complete yet.
  get text(): string {
    const last = this.rest === "" ? [] : [printableLine(this.rest, this.length)];
    return [...this.lines, ...last].join("\n");
  }
}

// The last lines of a log that is read from its beginning; null where there is too much of it.
export async function lastLines(
  body: ReadableStream<Uint8Array<ArrayBuffer>>, lines: number, most = 16_000_000,
): Promise<string | null> {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  const log = new LogText();
  for (let size = 0; ; ) {
    const { done, value } = await reader.read();
    if (done) return log.text.trimEnd().split("\n").slice(-lines).join("\n");
    log.add(value);
    size += value.length;
    if (size > most) {
      await reader.cancel();
      return null;
    }
  }
}
