// Numbers, times and amounts as people read them. Pure functions.

// Six significant digits at most; what is not a number says so.
export function short(value: number | null | undefined): string {
  if (value === null || value === undefined) return "–";
  if (Number.isNaN(value)) return "–";
  if (!Number.isFinite(value)) return value > 0 ? "∞" : "−∞";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e7 || size < 1e-4) return trimmed(value.toExponential(4));
  return trimmed(value.toPrecision(6));
}

// With as many digits as tell different numbers apart.
export function distinct(values: number[]): string[] {
  const n = new Set(values).size;
  let texts = values.map(short);
  for (let digits = 7; new Set(texts).size < n && digits <= 17; ++digits) {
    texts = values.map((value) => String(Number(value.toPrecision(digits))));
  }
  return texts;
}

// 0.500000 → 0.5, 1.5000e-7 → 1.5e-7; a real minus sign is left to typography, so that what is
// copied is still a number.
function trimmed(text: string): string {
  return text.replace(/(\.\d*?)0+(e|$)/, "$1$2").replace(/\.(e|$)/, "$1");
}

// A value that is a word. One of nothing, or of blanks, stands in quotes: it would not be seen.
export function word(text: string): string {
  return text.trim() === "" ? JSON.stringify(text) : text;
}

export function count(value: number): string {
  return Math.round(value).toString().replace(/\B(?=(\d{3})+$)/g, ",");
}

// 45 s, 12 min, 3 h 20 min, 2 d 4 h
export function duration(seconds: number): string {
  if (!Number.isFinite(seconds)) return "–";
  if (seconds < 0) return "0 s";
  if (seconds < 10) return `${trimmed(seconds.toFixed(1))} s`;
  if (seconds < 59.5) return `${Math.round(seconds)} s`;
  const minutes = Math.round(seconds / 60);
  if (minutes < 60) return seconds < 600 ? twoUnits(seconds, 60, "min", "s") : `${minutes} min`;
  if (seconds < 86400) return twoUnits(seconds, 3600, "h", "min");
  return twoUnits(seconds, 86400, "d", "h");
}

// Of a record that may not know it: of trials from elsewhere nothing says how long they took.
export function known(seconds: number): string {
  return seconds > 0 ? duration(seconds) : "–";
}

const UNIT_SECONDS: Record<string, number> = { s: 1, min: 60, h: 3600 };

function twoUnits(seconds: number, unit: number, name: string, rest: string): string {
  const small = UNIT_SECONDS[rest] ?? 1;
  const total = Math.round(seconds / small);
  const per = unit / small;
  const big = Math.floor(total / per);
  const left = total - big * per;
  return left === 0 ? `${big} ${name}` : `${big} ${name} ${left} ${rest}`;
}

export function age(from: string | undefined, now: number): string {
  if (!from) return "–";
  return duration((now - Date.parse(from)) / 1000);
}

export function money(amount: number | undefined, currency = "USD"): string {
  if (amount === undefined || Number.isNaN(amount)) return "–";
  const sign = currency === "USD" ? "$" : `${currency} `;
  const digits = amount !== 0 && Math.abs(amount) < 0.1 ? 4 : 2;
  return `${sign}${amount.toFixed(digits)}`;
}

export function percent(share: number): string {
  if (!Number.isFinite(share)) return "–";
  const value = share * 100;
  return `${value !== 0 && value < 10 ? trimmed(value.toFixed(1)) : Math.round(value)} %`;
}

export function bytes(size: number): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let at = 0;
  while (size >= 1024 && at + 1 < units.length) {
    size /= 1024;
    ++at;
  }
  return `${at === 0 ? size : trimmed(size.toFixed(1))} ${units[at]}`;
}

export function plural(n: number, one: string, many = one + "s"): string {
  return `${count(n)} ${n === 1 ? one : many}`;
}

// 14:02:07 today, else 22 Nov 14:02.
export function clock(time: string | number | undefined, now = Date.now()): string {
  if (time === undefined) return "–";
  const at = new Date(time);
  if (Number.isNaN(at.getTime())) return "–";
  const two = (n: number) => String(n).padStart(2, "0");
  const day = `${at.getDate()} ${MONTHS[at.getMonth()]}`;
  const minutes = `${two(at.getHours())}:${two(at.getMinutes())}`;
  const sameDay = new Date(now).toDateString() === at.toDateString();
  return sameDay ? `${minutes}:${two(at.getSeconds())}` : `${day} ${minutes}`;
}

const MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split(" ");

// One word of a POSIX shell.
export function shellWord(text: string): string {
  return /^[A-Za-z0-9_./:=@%+,~^-]+$/.test(text) && !text.startsWith("~")
    ? text
    : `'${text.replaceAll("'", `'\\''`)}'`;
}

// Katib's examples call parameters --lr.
export function argumentsOf(assignments: { name: string; value: string }[]): string {
  return assignments
    .map(({ name, value }) => shellWord(`${name.startsWith("-") ? "" : "--"}${name}=${value}`))
    .join(" ");
}
