/* What a person has chosen for this browser: theme, size, keys. Where nothing can be stored, it lasts until the page is
   closed. */

const here = new Map();

export function kept(name) {
  if (here.has(name)) return here.get(name);
  try {
    return localStorage.getItem(`dragoman-${name}`);
  } catch {
    return null;
  }
}

export function keep(name, value) {
  here.set(name, value);
  try {
    localStorage.setItem(`dragoman-${name}`, value);
  } catch { /* it is kept in memory */ }
}
