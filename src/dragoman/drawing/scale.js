/* Colours. Both scales are monotone in lightness, so that they read the same with any kind of colour vision and in
   grey; between their corners they are interpolated in OKLab (Ottosson 2020), where equal steps look equal. */

const LIGHT = ["#ffffff", "#d3e4f4", "#7fb2dc", "#2f6fb3", "#123a70"];
const DARK = ["#191d22", "#1d3a5f", "#2f6fb0", "#86b9e8", "#f2f8ff"];
const AGAINST = ["#ffffff", "#fbdcb8", "#ee9a45", "#b85c00", "#6b3200"];
const AGAINST_DARK = ["#191d22", "#4a2f14", "#a05a17", "#eda55a", "#fff3e4"];

/* Okabe and Ito's order, but for the yellow and the black, which would be lost on one of the grounds. */
export const HEADS = ["#2f78c4", "#e08a00", "#00976b", "#c45f96", "#4bb0e0", "#cf5a1c", "#7c6bd6", "#8a8f2a"];

const linear = (c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
const encoded = (c) => Math.round(255 * Math.min(1, Math.max(0, c <= 0.0031308 ? 12.92 * c : 1.055 * c ** (1 / 2.4) - 0.055)));

function lab(hex) {
  const [r, g, b] = [1, 3, 5].map((at) => linear(parseInt(hex.slice(at, at + 2), 16) / 255));
  const l = Math.cbrt(0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b);
  const m = Math.cbrt(0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b);
  const n = Math.cbrt(0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b);
  return [0.2104542553 * l + 0.793617785 * m - 0.0040720468 * n, 1.9779984951 * l - 2.428592205 * m + 0.4505937099 * n,
    0.0259040371 * l + 0.7827717662 * m - 0.808675766 * n];
}

function rgb([lightness, a, b]) {
  const l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const n = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3;
  return [4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * n, -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * n,
    -0.0041960863 * l - 0.7034186147 * m + 1.707614701 * n].map(encoded);
}

function table(corners) {
  const places = corners.map(lab);
  return Array.from({ length: 256 }, (_, step) => {
    const at = (step / 255) * (corners.length - 1);
    const low = Math.min(Math.floor(at), corners.length - 2), share = at - low;
    return rgb(places[low].map((value, i) => value + share * (places[low + 1][i] - value)));
  });
}

const TABLES = { light: [table(LIGHT), table(AGAINST)], dark: [table(DARK), table(AGAINST_DARK)] };

export const theme = () => (document.documentElement.dataset.theme === "dark" ? "dark" : "light");

/* 256 triples from nothing to everything. */
export const weightTable = () => TABLES[theme()][0];

const css = ([r, g, b]) => `rgb(${r},${g},${b})`;
const step = (share) => Math.round(255 * Math.min(1, Math.max(0, share)));

export const weightColour = (share) => css(weightTable()[step(share)]);

/* −1 to 1: orange below, blue above. The last quarter of the tables is left out: by night
   both of them end in white. */
const signed = (share) => TABLES[theme()][share < 0 ? 1 : 0][step(0.75 * Math.abs(share))];

export const signedColour = (share) => css(signed(share));

/* Text that can be read on a colour: near-black or white, whichever has more contrast. */
const luminance = ([r, g, b]) => 0.2126 * linear(r / 255) + 0.7152 * linear(g / 255) + 0.0722 * linear(b / 255);
const inkOn = (colour) => (luminance(colour) > 0.185 ? "#0b0e12" : "#ffffff");

export const textOnSigned = (share) => inkOn(signed(share));
export const textOnWeight = (share) => inkOn(weightTable()[step(share)]);

/* A piece by its probability: the less the model expected it, the more orange. */
export const surprise = (score) => {
  const doubt = 1 - Math.exp(score === null ? -Infinity : score);
  return css(TABLES[theme()][1][step(0.46 * doubt)]);
};

const named = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

export const palette = () => ({
  text: named("--text"), soft: named("--soft"), line: named("--line"), surface: named("--surface"), sunk: named("--sunk"),
  accent: named("--accent"), accentSoft: named("--accent-soft"), warn: named("--warn"), good: named("--good"), goodSoft: named("--good-soft"),
});
