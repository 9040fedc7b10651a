/* An image, with the patches that were looked at. */

import { drawing, s, told } from "./dom.js";
import { palette } from "./scale.js";

const SIDE = 340; // pixels of its longer side

/* Pixels, three bytes each, as a data: address. */
function address({ pixels, width, height }) {
  const canvas = document.createElement("canvas"), bytes = atob(pixels);
  [canvas.width, canvas.height] = [width, height];
  const context = canvas.getContext("2d"), image = context.createImageData(width, height);
  for (let at = 0; at < width * height; at += 1) {
    for (let part = 0; part < 3; part += 1) image.data[4 * at + part] = bytes.charCodeAt(3 * at + part);
    image.data[4 * at + 3] = 255;
  }
  context.putImageData(image, 0, 0);
  return canvas.toDataURL();
}

/* The image; with a map, veiled where it was not looked at. `frame` is a patch, [row, column]. */
export function patches(data, map, frame, label) {
  const zoom = SIDE / Math.max(data.width, data.height), [width, height] = [zoom * data.width, zoom * data.height];
  const { surface, accent } = palette(), [down, across] = [map?.length ?? 1, map?.[0].length ?? 1];
  const [high, wide] = [height / down, width / across], most = map ? Math.max(...map.flat()) : 1;
  const box = (r, c, rest) => s("rect", { x: c * wide, y: r * high, width: wide, height: high, ...rest });
  return drawing(width, height, label, told(map ? `brightest at row ${1 + map.findIndex((row) => row.includes(most))}` : data.name),
    s("image", { width, height, href: address(data), preserveAspectRatio: "none", "image-rendering": "pixelated" }),
    map && map.flatMap((row, r) => row.map((weight, c) => box(r, c, { fill: surface, "fill-opacity": (0.85 * (1 - weight / most)).toFixed(2) }))),
    frame && box(...frame, { fill: "none", stroke: accent, "stroke-width": 2.5 }));
}
