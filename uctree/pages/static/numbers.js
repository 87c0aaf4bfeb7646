// Numbers as text, and arrays of numbers from base64.

export const count = (number) => number.toLocaleString("en");

export const signed = (number) => (number < 0 ? "\u2212" : "+") + Math.abs(number).toFixed(3);

export const short = (number) => {
  const size = Math.abs(number);
  if (size >= 1e6) return +(number / 1e6).toPrecision(3) + "M";
  if (size >= 1e3) return +(number / 1e3).toPrecision(3) + "k";
  return String(+number.toPrecision(3));
};

export const typed = (text, Type) => {
  const raw = atob(text);
  const bytes = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
  return new Type(bytes.buffer);
};
